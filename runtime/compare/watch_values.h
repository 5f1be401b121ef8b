// Taps on the values of a step that is watched: fusions stay what they are, and
// what they hide is computed beside them from their bodies.
#ifndef HALFTONE_RUNTIME_COMPARE_WATCH_VALUES_H_
#define HALFTONE_RUNTIME_COMPARE_WATCH_VALUES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "runtime/compare/match_values.h"
#include "runtime/compare/value_errors.h"
#include "runtime/exec/body_runner.h"
#include "runtime/exec/step_watcher.h"

namespace halftone {
namespace runtime {

class ValueWatcher : public StepWatcher {
 public:
  absl::Status Begin(const StepPlace& place) override;
  absl::Status Before(const Step& step, Pointers inputs) override;
  absl::Status After(const Step& step, Pointers inputs,
                     absl::Span<void* const> outputs) override;

 protected:
  struct Tap {
    ValueKey key;
    kernels::TensorDesc desc;
    void* data;   // on the device
    bool is_own;  // of the step: no cell, constant or feed
  };
  // Whether a value that a fusion hides is to be computed.
  virtual bool Wants(const ValueKey& key) const = 0;
  // Before it is read; it may be overwritten if it is the step's own.
  virtual absl::Status OnInput(const Tap& tap) = 0;
  virtual absl::Status OnOutput(const Tap& tap) = 0;

  const StepPlace& place() const { return place_; }
  // Where the host can read it until the next call.
  absl::StatusOr<const void*> OnHost(const Tap& tap);

 private:
  absl::Status RunBody(const Block& body, Pointers inputs);
  // Ops that lead to values that are hidden and wanted, in order.
  const std::vector<OpId>& OpsToRun(const Block& body);

  StepPlace place_;
  BodyRunner bodies_;
  absl::flat_hash_map<const Block*, std::vector<OpId>> ops_to_run_;
  std::string host_;
};

// What is kept of a reference's step, in the compared program's layout.
struct KeptValue {
  bool there = false;
  std::vector<float> data;  // of what is measured: in f32, not scaled
  std::string bytes;        // of anything else
};

// Keeps the references of a match.
class ReferenceKeeper : public ValueWatcher {
 public:
  // `match` outlives the keeper. `scales`: of the reference's scalers.
  ReferenceKeeper(const ValueMatch* match, std::vector<float> scales)
      : match_(*match),
        scales_(std::move(scales)),
        kept_(match->references.size()) {}

  absl::Status Begin(const StepPlace& place) override;
  const std::vector<KeptValue>& kept() const { return kept_; }

 protected:
  bool Wants(const ValueKey& key) const override {
    return match_.kept.contains(key);
  }
  absl::Status OnInput(const Tap& tap) override { return Keep(tap); }
  absl::Status OnOutput(const Tap& tap) override { return Keep(tap); }

 private:
  absl::Status Keep(const Tap& tap);

  const ValueMatch& match_;
  std::vector<float> scales_;
  std::vector<KeptValue> kept_;
};

// Measures the compared program's values against what was kept.
class ErrorWatcher : public ValueWatcher {
 public:
  // Both outlive the watcher. `isolated`: each op reads the reference's values
  // in the dtypes of its own program, else what its own program has made.
  ErrorWatcher(const ValueMatch* match, const std::vector<KeptValue>* kept,
               std::vector<float> scales, bool isolated)
      : match_(*match),
        kept_(*kept),
        scales_(std::move(scales)),
        isolated_(isolated),
        errors_(match->values.size()) {}

  absl::Status Begin(const StepPlace& place) override;
  // Of each of the match's values, over all steps watched; no elements: it was
  // not seen.
  const std::vector<ValueErrors>& errors() const { return errors_; }

 protected:
  bool Wants(const ValueKey& key) const override {
    return match_.compared.contains(key);
  }
  absl::Status OnInput(const Tap& tap) override;
  absl::Status OnOutput(const Tap& tap) override;

 private:
  // What is compared with the tap; null: nothing.
  const KeptValue* ReferenceOf(const Tap& tap, int* number, float* scale) const;
  // ValueErrors::rounding of a value of so many elements.
  double RoundingOf(const MatchedValue& value, int64_t elements) const;

  const ValueMatch& match_;
  const std::vector<KeptValue>& kept_;
  std::vector<float> scales_;
  bool isolated_;
  std::vector<ValueErrors> errors_;
  absl::flat_hash_set<ValueKey> given_;  // of this step
  std::string written_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COMPARE_WATCH_VALUES_H_

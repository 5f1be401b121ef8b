// Runs passes in order and holds each of them to its word.
#ifndef HALFTONE_PASSES_PIPELINE_H_
#define HALFTONE_PASSES_PIPELINE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "graph/verify/verify.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

// What became of one pass or group.
struct PassRun {
  std::string name;
  double ms = 0;
  bool changed = false;
  int times = 1;                // that a pass ran
  std::vector<PassRun> passes;  // of a group
};

// The pass that an error of a pipeline is from; empty: of none.
std::string PassAtFault(const absl::Status& status);
// The error as one of that pass.
absl::Status FromPass(absl::string_view pass, absl::Status status);

// What a check that fails is to users (kCompilerBug), with the pass that runs
// on this thread, if one does. `what`: as OnFailedCheck has it.
absl::Status FailedCheckError(absl::string_view what);

// Verifies its input and the program at the end of each phase. The name of
// the pass at fault is part of every error.
class PassPipeline {
 public:
  struct Settings {
    // Verify after each run of a pass, and hold what it says of `changed`
    // against the program's fingerprint.
    bool verify_each = false;
    // 000.source.txt and NNN.<name>.txt after each run of a pass and at the
    // end of a group go there; empty: none.
    std::string dump_dir;
    // Regular expression (ECMAScript without counted repeats and references,
    // at most 200 characters) that a dumped name matches as a whole; empty:
    // all.
    std::string dump_after;
    // What holds of the input.
    Phase input = Phase::kSource;
  };
  explicit PassPipeline(Settings settings) : settings_(std::move(settings)) {}

  // Phases never decrease. After the last pass of a phase the program is
  // verified at it.
  void Add(std::unique_ptr<Pass> pass, Phase phase);
  enum class Repeat {
    kOnce,
    // Round and round, until each has seen what the others did.
    kUntilUnchanged,
  };
  // Passes that belong together, under a name of their own.
  void AddGroup(std::string name, std::vector<std::unique_ptr<Pass>> passes,
                Repeat repeat, Phase phase);
  // Called with the verified program at the end of `phase`, if any pass
  // belongs to it.
  void AtEndOf(Phase phase,
               std::function<absl::Status(const Program&)> observer);

  // Errors: of a pass, with its name; kCompilerBug for a pass whose result
  // does not verify or that misreports `changed`; kUsage for a bad
  // `dump_after`, or one that matches no pass; kModel for a dump that cannot be
  // written.
  absl::Status Run(Program& program);

  // Of the last Run, in order.
  const std::vector<PassRun>& runs() const { return runs_; }

 private:
  struct Step {
    std::string group;  // empty: one pass by itself
    std::vector<std::unique_ptr<Pass>> passes;
    Repeat repeat;
    Phase phase;
    // What errors and dumps of the whole step call it.
    absl::string_view name() const {
      return group.empty() ? passes[0]->name() : group;
    }
  };
  struct Observer {
    Phase phase;
    std::function<absl::Status(const Program&)> call;
  };
  class Driver;  // of one Run
  std::vector<std::string> DumpNames() const;

  Settings settings_;
  std::vector<Step> steps_;
  std::vector<Observer> observers_;
  std::vector<PassRun> runs_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PIPELINE_H_

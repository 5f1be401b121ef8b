// Times the candidates of a program's ops on a device.
#ifndef HALFTONE_RUNTIME_TUNE_TUNE_H_
#define HALFTONE_RUNTIME_TUNE_TUNE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "kernels/kernel_registry.h"
#include "runtime/device/device.h"
#include "runtime/plan/tuning_table.h"

namespace halftone {
namespace runtime {

struct TuneOptions {
  int runs = 7;  // of each candidate; their median counts
  bool deterministic = true;
  int world_size = 1;
  // Written between two runs, so that none finds its inputs in a cache.
  int64_t flush_bytes = int64_t{128} << 20;
  // Told how many of the bindings' steps are done, of how many.
  std::function<void(int64_t done, int64_t of)> on_progress;
};

// An entry with the samples of one rank.
struct TuneBinding {
  std::string entry;
  SymbolValues symbols{};
};

struct TimedCandidate {
  std::string name;
  double microseconds = 0;  // median; 0 if it does not run here
  std::string failure;      // why it does not
};

// Ops that are alike: one key of the table.
struct TunedOp {
  std::string key;
  std::string first;  // name of the first of them
  std::string type;
  int uses = 0;                            // in all bindings
  std::vector<TimedCandidate> candidates;  // best first by the registry
  int chosen = 0;
  double default_microseconds() const { return candidates[0].microseconds; }
  double microseconds() const { return candidates[chosen].microseconds; }
};

struct Tuned {
  TuningTable table;
  std::vector<TunedOp> ops;  // in the order of the bindings' steps
};

// Times what has several candidates beside the reference, and what the device
// reaches in products and copies. A candidate that cannot be made on this
// device is left out; one that fails while it runs is an error that names it. A
// later one is preferred only where it is 3 % faster: less than that is not
// told apart by seven runs.
absl::StatusOr<Tuned> Tune(const Program& program,
                           const kernels::KernelRegistry& kernels,
                           absl::Span<const TuneBinding> bindings,
                           const TuneOptions& options, Device& device);

// Where a model's table lies: "mnist.htc" -> "mnist.tuning.json".
std::string TuningPathOf(const std::string& model);
// The table there; an empty one if there is none. Errors are kModel.
absl::StatusOr<TuningTable> ReadTuningBeside(const std::string& model);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TUNE_TUNE_H_

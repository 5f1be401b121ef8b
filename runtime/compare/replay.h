// A capsule's step, run again on the ranks of one process.
#ifndef HALFTONE_RUNTIME_COMPARE_REPLAY_H_
#define HALFTONE_RUNTIME_COMPARE_REPLAY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "kernels/kernel_registry.h"
#include "runtime/capsule/capsule.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

// The numbers of one value.
struct ValueRange {
  std::string name;
  DType dtype{};
  int64_t elements = 0, non_finite = 0;
  double min = 0, max = 0;  // of the finite ones
  int64_t above_f16 = 0;    // whose magnitude is above f16's largest, 65504
  double largest() const;   // magnitude, of the finite ones
};

// Of a loss whose parts have a scaler each.
struct ReplayedPart {
  std::string name;
  float loss_scaling = 1;
  bool not_finite = false;  // a gradient of it
};

struct Replayed {
  bool rejected = false;
  int64_t rank = -1;  // on which the op is; -1: there is none
  NonFinite found;
  std::vector<ValueRange> inputs, outputs;  // of that op
  float loss_scaling = 1;                   // the smallest of the parts'
  std::vector<ReplayedPart> parts;          // empty: one scaler for all
  // The largest power of two below the scale, or the largest of the parts',
  // with which for all parts the step is not rejected; 0: none down to 1.
  double clean_loss_scaling = 0;
  // Parameters that a rejected step has found, by name, that no precision of
  // its ops mends: not finite, or in part beyond the largest of their low copy.
  std::vector<ValueRange> ruined;
};

// `ranks` are the capsule's. Errors: feeds or cells that are not the program's
// (kCheckpoint), those of the executor.
absl::StatusOr<Replayed> Replay(const Capsule& capsule, const Program& program,
                                const kernels::KernelRegistry& kernels,
                                const std::vector<RankResources>& ranks);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COMPARE_REPLAY_H_

// --fetch VALUE[:norm|hist|npz]: values of the train entry, every --log-every
// steps.
#ifndef HALFTONE_RUNTIME_TRAIN_FETCHES_H_
#define HALFTONE_RUNTIME_TRAIN_FETCHES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "runtime/exec/executor.h"
#include "runtime/report/step_events.h"

namespace halftone {
namespace runtime {

// All values of a check's gradients, squared and summed: [gradient].
inline constexpr char kSquaredNorm[] = "@squared_norm";
// What a reduced gradient is multiplied by: f32[].
inline constexpr char kInvScale[] = "@inv_scale";

struct Fetch {
  enum class Kind : uint8_t {
    kValue,  // the elements; of more than kMostElements, the norm
    kNorm,   // Euclidean
    kHist,   // min, max, non-finite elements, then kBins counts in between
    kNpz,    // a file of its own
  };
  std::string text;  // as typed
  std::string value;
  Kind kind = Kind::kValue;
  // What the executor keeps for it, and whether that is a reduced gradient,
  // still to be multiplied by @inv_scale.
  std::string kept;
  bool unscale = false;
};
inline constexpr int64_t kMostElements = 16;
inline constexpr int kBins = 32;

// Errors: kUsage.
absl::StatusOr<std::vector<Fetch>> ParseFetches(
    const std::vector<std::string>& texts);

// Finds what is kept for each fetch: for `w.grad` of a parameter w the reduced
// gradient that the update reads, since unscaling is folded into the update;
// for anything else the value of that name.
void ResolveFetches(const Program& program, std::vector<Fetch>* fetches);

// The values that an executor must keep: those asked for, and what is needed
// to say whether a bad gradient has inf or nan.
absl::StatusOr<std::vector<std::string>> FetchedValues(
    const Program& program, const std::vector<std::string>& texts);

// A result's elements in row-major order as f32.
std::vector<float> Floats(const StepView::Item& item);
// The summary that a fetch asks for (kNpz: the norm).
std::vector<float> Summarize(const Fetch& fetch,
                             const std::vector<float>& values);

// What the fetches of a step show: this rank's share where a value is of this
// rank's samples. Arrays go to `<directory>/step-N.npz`; `*written` says
// whether they could be.
std::vector<FetchedValue> TakeFetches(const std::vector<Fetch>& fetches,
                                      const StepView& view, int64_t step,
                                      const std::string& directory,
                                      absl::Status* written);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_FETCHES_H_

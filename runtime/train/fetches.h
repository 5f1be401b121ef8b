// --fetch VALUE[:norm|hist|npz|exponents]: values of the train entry, every
// --log-every or --fetch-every steps.
#ifndef HALFTONE_RUNTIME_TRAIN_FETCHES_H_
#define HALFTONE_RUNTIME_TRAIN_FETCHES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/dtype.h"
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
    kValue,      // the elements; of more than kMostElements, the norm
    kNorm,       // Euclidean
    kHist,       // min, max, non-finite elements, then kBins counts in between
    kNpz,        // a file of its own
    kExponents,  // what f16 keeps of it: report/exponents.h
  };
  std::string text;  // as typed, or a glob's with the value that it matches
  std::string value;
  Kind kind = Kind::kValue;
  // What the executor keeps for it, and whether that is a reduced gradient,
  // still to be multiplied by @inv_scale.
  std::string kept;
  bool unscale = false;
  // What is kept has the loss scale in it.
  bool scaled = false;
};
inline constexpr int64_t kMostElements = 16;
inline constexpr int kBins = 32;

// Errors: kUsage.
absl::StatusOr<std::vector<Fetch>> ParseFetches(
    const std::vector<std::string>& texts);

// Whether a fetch of that kind may be of a value of that dtype.
bool Takes(Fetch::Kind kind, DType dtype);

// A result's elements in row-major order as f32.
std::vector<float> Floats(const StepView::Item& item);
// The summary that a fetch asks for (kNpz: the norm).
std::vector<float> Summarize(const Fetch& fetch,
                             const std::vector<float>& values);

// Puts what the fetches show of the step into `event`: this rank's share where
// a value is of this rank's samples. `scale`: the loss scale that the step ran
// with. Exponents are those of a value as it is kept, with the loss scale that
// it has. Arrays go to `<directory()>/step-N.npz`, which is called where there
// are any; returns whether they could be written (kModel).
absl::Status TakeFetches(
    const std::vector<Fetch>& fetches, const StepView& view, float scale,
    absl::FunctionRef<absl::StatusOr<std::string>()> directory,
    StepEvent* event);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_FETCHES_H_

// What `halftone predict` prints and writes.
#ifndef HALFTONE_TOOLS_REPORT_PREDICT_REPORT_H_
#define HALFTONE_TOOLS_REPORT_PREDICT_REPORT_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "runtime/train/predict.h"

namespace halftone {
namespace tools {

// What the numbers of an output say of its classes.
enum class ScoreKind : uint8_t {
  kScores,         // the larger the better
  kProbabilities,  // a softmax's
  kLogits,         // whose softmax are probabilities: a loss takes them so
};
// By output, of the model as it was written.
std::map<std::string, ScoreKind> ScoreKindsOf(const Program& source);

struct PredictQuestion {
  std::map<std::string, ScoreKind> kinds;
  int64_t top = 5;  // classes of each row of a matrix
  std::string out;  // the file that was written; empty: none
};

// A table for each output: of a matrix of floating-point numbers the best
// classes, of others their values if they are few. With a file, what is in it.
std::string PredictText(const runtime::Predictions& predictions,
                        const PredictQuestion& question);
// The same as one object.
std::string PredictJson(const runtime::Predictions& predictions,
                        const PredictQuestion& question);

// The content of FILE.npz (an array for each output) or FILE.jsonl (a line for
// each sample; before them one for what is of no sample). Other names are
// refused (kUsage); the first says whether it is to be .npz.
absl::StatusOr<bool> WantsNpz(const std::string& path);
// Whether a file of that name can hold outputs of these names: in a line of
// .jsonl `sample` is its number. Errors: kUsage.
absl::Status CheckPredictFile(const std::string& path,
                              absl::Span<const std::string> outputs);
absl::StatusOr<std::string> PredictFile(runtime::Predictions predictions,
                                        const std::string& path);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_PREDICT_REPORT_H_

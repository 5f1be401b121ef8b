// What tells the samples of a run from others: a checkpoint keeps it, so that
// none goes on with other data.
#ifndef HALFTONE_RUNTIME_DATA_SAMPLE_MARKS_H_
#define HALFTONE_RUNTIME_DATA_SAMPLE_MARKS_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// A hash of what is known of a sample, and how it is called in messages.
using KeyOf = absl::FunctionRef<uint64_t(int64_t)>;
using NameOf = absl::FunctionRef<std::string(int64_t)>;

// "SAMPLES BLOCK HASH,HASH,...": a hash for each BLOCK samples in a row, of
// which there are few, so that it is short whatever the number of samples.
std::string MarkSamples(int64_t samples, KeyOf key);

// Whether these are the samples that were marked. Errors (kModel) name the
// first that is not, or the few among which it is; what are no marks.
absl::Status CheckMarks(absl::string_view marks, int64_t samples, KeyOf key,
                        NameOf name);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_SAMPLE_MARKS_H_

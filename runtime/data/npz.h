// Arrays in NumPy's .npz: a zip file of .npy files, stored as they are.
#ifndef HALFTONE_RUNTIME_DATA_NPZ_H_
#define HALFTONE_RUNTIME_DATA_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"

namespace halftone {
namespace runtime {

struct NpzArray {
  std::string name;
  DType dtype{};  // not bf16, which NumPy lacks
  std::vector<int64_t> dims;
  std::string bytes;  // row-major
};
NpzArray FloatArray(std::string name, std::vector<int64_t> dims,
                    absl::Span<const float> values);

// What an array is called in the archive: its name where that is a plain path,
// else with %XX for what would lead out of the folder into which somebody
// unpacks it (.., a leading /, backslashes, colons), for control characters,
// bytes that are no UTF-8, and % itself. Different names stay different.
std::string MemberName(absl::string_view name);

// The bytes of the file; below 4 GiB (zip without the 64-bit extension), which
// is so while the arrays' bytes sum to no more than this. Of arrays of one name
// the first.
inline constexpr int64_t kMostNpzBytes = (int64_t{1} << 32) - (1 << 26);
std::string SerializeNpz(absl::Span<const NpzArray> arrays);

// The other way: all arrays in their order, under the names of their members
// without .npy; integers of other sizes than we have become i64. Errors
// (kModel): those of ZipArchive, ParseNpy and ElementsAs.
absl::StatusOr<std::vector<NpzArray>> ParseNpz(absl::string_view content,
                                               absl::string_view file);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_NPZ_H_

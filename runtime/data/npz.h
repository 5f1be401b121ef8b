// Arrays in NumPy's .npz: a zip file of .npy files, stored as they are.
#ifndef HALFTONE_RUNTIME_DATA_NPZ_H_
#define HALFTONE_RUNTIME_DATA_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {
namespace runtime {

struct NpzArray {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<float> values;  // row-major; stored as little-endian f32
};

// What an array is called in the archive: its name where that is a plain path,
// else with %XX for what would lead out of the folder into which somebody
// unpacks it (.., a leading /, backslashes, colons), for control characters,
// bytes that are no UTF-8, and % itself. Different names stay different.
std::string MemberName(absl::string_view name);

// The bytes of the file; below 4 GiB (zip without the 64-bit extension). Of
// arrays of one name the first.
std::string SerializeNpz(absl::Span<const NpzArray> arrays);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_NPZ_H_

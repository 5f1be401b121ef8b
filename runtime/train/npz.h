// Arrays in NumPy's .npz: a zip file of .npy files, stored as they are.
#ifndef HALFTONE_RUNTIME_TRAIN_NPZ_H_
#define HALFTONE_RUNTIME_TRAIN_NPZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace halftone {
namespace runtime {

struct NpzArray {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<float> values;  // row-major; stored as little-endian f32
};

// The bytes of the file; below 4 GiB (zip without the 64-bit extension).
std::string SerializeNpz(absl::Span<const NpzArray> arrays);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_NPZ_H_

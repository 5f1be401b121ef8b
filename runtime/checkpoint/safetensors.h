// Tensors and the file format that holds them: a header of sorted JSON, then
// data.
#ifndef HALFTONE_RUNTIME_CHECKPOINT_SAFETENSORS_H_
#define HALFTONE_RUNTIME_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"

namespace halftone {
namespace runtime {

struct Tensor {
  std::string name;
  DType dtype{};
  std::vector<int64_t> dims;
  std::string bytes;  // logical row-major, little-endian
};

// A tensor without its bytes: they lie at [begin, end) of the data.
struct TensorHead {
  std::string name;
  DType dtype{};
  std::vector<int64_t> dims;
  int64_t begin = 0, end = 0;
};

// What a file of tensors begins with: all but their data, which lies in the
// order and places of `heads`.
std::string SafetensorsHeader(absl::Span<const TensorHead> heads);
std::string SerializeSafetensors(absl::Span<const Tensor> tensors);

// By name. Every tensor's bytes fit its shape, and together they are the data:
// none is claimed twice and none is left over, so that what a reader holds is
// never more than the file. Errors: kModel.
absl::StatusOr<std::vector<Tensor>> ParseSafetensors(absl::string_view content,
                                                     absl::string_view file);

// The first bytes of a file say how long its header is; then comes the data.
inline constexpr int64_t kSafetensorsPrefix = 8;
absl::StatusOr<int64_t> SafetensorsHeaderBytes(absl::string_view prefix,
                                               int64_t file_bytes,
                                               absl::string_view file);
// The same checks, from a header alone; by name.
absl::StatusOr<std::vector<TensorHead>> ParseSafetensorsHeader(
    absl::string_view header, int64_t data_bytes, absl::string_view file);

// Element-wise conversion between float dtypes (f32 f16 bf16 f64), rounding
// to nearest even once.
absl::StatusOr<Tensor> ConvertTensor(const Tensor& tensor, DType to);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_CHECKPOINT_SAFETENSORS_H_

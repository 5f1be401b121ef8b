// Small host-side helpers over raw tensor bytes.
#ifndef HALFTONE_RUNTIME_EXEC_HOST_TENSOR_H_
#define HALFTONE_RUNTIME_EXEC_HOST_TENSOR_H_

#include <string>

#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace runtime {

// The first element as double; 0 for an empty tensor.
double FirstElement(DType dtype, const void* data);
// Whether all elements of a float tensor are finite; true for other dtypes.
bool AllFinite(DType dtype, const void* data, int64_t elements);
// A constant's values as bytes of its dtype, rounded once.
std::string ConstantBytes(const Constant& constant);
// Reorders a 4-d tensor between its physical layout and logical row-major;
// other tensors are copied as they are.
std::string ToRowMajor(const kernels::TensorDesc& desc,
                       absl::string_view physical);
std::string FromRowMajor(const kernels::TensorDesc& desc,
                         absl::string_view logical);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_HOST_TENSOR_H_

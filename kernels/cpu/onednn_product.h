// Matrix products within other kernels, through oneDNN.
#ifndef HALFTONE_KERNELS_CPU_ONEDNN_PRODUCT_H_
#define HALFTONE_KERNELS_CPU_ONEDNN_PRODUCT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "dnnl.hpp"
#include "graph/base/dtype.h"
#include "kernels/common/matmul_shape.h"

namespace halftone {
namespace kernels {

// out = x * y of one shape (no batch), again and again, added up in f32. The
// arguments of a call are in one place, so an instance belongs to one kernel
// instance.
class OnednnProduct {
 public:
  // operands: what x and y are of, as `out` f32 or bf16. repeated: y is
  // packed once, by Pack, for many calls of Run. Throws dnnl::error where the
  // library cannot.
  OnednnProduct(const Product& product, DType operands, DType out,
                bool repeated, int threads);

  // For packed y, then scratch.
  int64_t workspace_bytes() const;

  absl::Status Pack(const void* y, void* workspace);
  // `y` is not read if it is packed.
  absl::Status Run(const void* x, const void* y, void* out, void* workspace);

 private:
  absl::Status Execute(const dnnl::primitive& primitive,
                       const dnnl_exec_arg_t* arguments, int count);

  dnnl::matmul::primitive_desc desc_;
  dnnl::matmul product_;
  dnnl::reorder pack_;
  bool repeated_;
  bool ran_ = false;
  dnnl::memory x_, y_, plain_y_, out_, scratch_;
  dnnl::stream stream_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_ONEDNN_PRODUCT_H_

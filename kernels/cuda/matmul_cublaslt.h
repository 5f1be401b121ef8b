// Descriptions of products as cuBLASLt's own objects, and its calls.
#ifndef HALFTONE_KERNELS_CUDA_MATMUL_CUBLASLT_H_
#define HALFTONE_KERNELS_CUDA_MATMUL_CUBLASLT_H_

#include <cublasLt.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/matmul.h"

namespace halftone {
namespace kernels {
namespace cuda {

template <typename T, cublasStatus_t (*kDestroy)(T)>
struct CublasLtDestroyer {
  using pointer = T;
  void operator()(T object) const { kDestroy(object); }
};
template <typename T, cublasStatus_t (*kDestroy)(T)>
using CublasLtOwned = std::unique_ptr<T, CublasLtDestroyer<T, kDestroy>>;

// Needs no device.
class CublasLtProduct {
 public:
  static absl::StatusOr<CublasLtProduct> Create(const BoundProduct& product,
                                                absl::string_view op);
  // Of bias or sums, and of aux or the mask; those that the epilogue lacks are
  // left out.
  absl::Status SetPointers(const void* vector, const void* aux,
                           absl::string_view op);

  bool has_epilogue() const { return has_epilogue_; }
  cublasLtMatmulDesc_t desc() const { return desc_.get(); }
  cublasLtMatrixLayout_t a() const { return a_.get(); }
  cublasLtMatrixLayout_t b() const { return b_.get(); }
  cublasLtMatrixLayout_t d() const { return d_.get(); }

 private:
  using MatrixLayout =
      CublasLtOwned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  static absl::StatusOr<MatrixLayout> Describe(const ColumnMatrix& m,
                                               absl::string_view op);
  absl::Status Describe(const BoundProduct& product, absl::string_view op);

  CublasLtOwned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> desc_;
  MatrixLayout a_, b_, d_;
  bool has_epilogue_ = false, has_vector_ = false, has_aux_ = false;
};

ProductLibrary CublasLt();

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_MATMUL_CUBLASLT_H_

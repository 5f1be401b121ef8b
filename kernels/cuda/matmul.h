// Kernels of products, whoever multiplies.
#ifndef HALFTONE_KERNELS_CUDA_MATMUL_H_
#define HALFTONE_KERNELS_CUDA_MATMUL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/matmul_product.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// A product that a library has prepared for one device.
class ProductCall {
 public:
  struct Data {
    const void *a = nullptr, *b = nullptr;
    void* d = nullptr;
    const void* bias = nullptr;
    void* aux = nullptr;  // of kReluGrad the mask; read only by gradients
    void* sums = nullptr;
    void* workspace = nullptr;
  };
  virtual ~ProductCall() = default;
  virtual absl::Status Run(const Data& data, runtime::Stream& stream) = 0;
};

// A library that multiplies; `name` is its candidates'.
struct ProductLibrary {
  std::string name;
  int64_t workspace_bytes = 0;
  // Null: it has no algorithm for that, with the product's epilogue.
  std::function<absl::StatusOr<std::unique_ptr<ProductCall>>(
      const BoundProduct&, absl::string_view op, runtime::Device&)>
      prepare;
};

// matmul, mul and the patterns that BindMatmulFusion binds.
void RegisterProducts(const ProductLibrary& library, KernelRegistry& registry);
// rnn, rnn_eval and rnn_grad with the library's products (recurrent.cu).
void RegisterRecurrent(const ProductLibrary& library, KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_MATMUL_H_

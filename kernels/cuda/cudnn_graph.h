// Graphs of cuDNN as plain data: what they compute. cudnn_library.h runs them.
#ifndef HALFTONE_KERNELS_CUDA_CUDNN_GRAPH_H_
#define HALFTONE_KERNELS_CUDA_CUDNN_GRAPH_H_

#include <cstdint>
#include <vector>

#include "graph/base/dtype.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {
namespace cuda {

struct CudnnTensor {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> dims, strides;  // in elements
  // Between two nodes: never in memory.
  bool internal = false;
};

struct CudnnNode {
  enum class Kind {
    kConv,            // image, filter -> result
    kConvGradImage,   // result's gradient, filter -> image's
    kConvGradFilter,  // result's gradient, image -> filter's
    kAdd,             // x, y -> x + y; y may be broadcast
    kSubtract,        // x, y -> x - y; likewise
    kMultiply,        // x, y -> x * y; likewise
    kRelu,            // x -> max(x, 0); a NaN stays one
    kReluGrad,        // gradient, x -> gradient where x > 0, else 0
    kChannelSums,     // x -> sum, sum of squares over all but channels
    // g, x, mean, inv_std, scale -> sum of g * (x - mean) * inv_std, sum of g
    // and the factors (of g, of x, constant) that make x's gradient of them
    kNormGradSums,
    kAttention,  // q, k, v -> out, unless at test time LogSumExp
    // q, k, v, out, its gradient, LogSumExp -> gradients of q, k, v
    kAttentionGrad,
  };
  Kind kind = Kind::kConv;
  std::vector<int> inputs, outputs;  // positions in the graph's tensors
  // Of convolutions only, for each spatial dim.
  std::vector<int64_t> stride, dilation, before, after;
  // Of attention only.
  bool causal = false;
  float scale = 1;
};

// Arithmetic, internal tensors and sums are f32; outputs are rounded once.
struct CudnnGraph {
  std::vector<CudnnTensor> tensors;
  std::vector<CudnnNode> nodes;
  // Only engines that give the same bits on every run.
  bool deterministic = true;
  // f32 operands may be rounded to TF32.
  bool tf32 = false;

  // Add a tensor and return its position. cuDNN knows images of 2 or 3 spatial
  // dims: of one row where there is but one, and a vector is one per channel
  // beside images of so many dims.
  int Add(const TensorDesc& desc, int image_rank = 4);
  int AddInternal(const TensorDesc& like);
  void Add(CudnnNode::Kind kind, std::vector<int> inputs,
           std::vector<int> outputs);
  // Whether no tensor is without elements: cuDNN takes none.
  bool HasElements() const;
};

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CUDNN_GRAPH_H_

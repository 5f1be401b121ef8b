// Convolutions as graphs of cuDNN.
#ifndef HALFTONE_KERNELS_CUDA_CONV_CUDNN_H_
#define HALFTONE_KERNELS_CUDA_CONV_CUDNN_H_

#include <memory>
#include <vector>

#include "kernels/common/conv_shape.h"
#include "kernels/cuda/cudnn_cache.h"
#include "kernels/cuda/cudnn_graph.h"
#include "kernels/cuda/cudnn_library.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// A graph and where its tensors come from.
struct BoundGraph {
  CudnnGraph graph;
  // By tensor: a flat position in Buffers::inputs, or outputs; or an offset in
  // the workspace, in bytes; neither: an internal one.
  struct Source {
    int position = -1;
    bool output = false;
    int64_t scratch = -1;
  };
  std::vector<Source> sources;

  int Input(const TensorDesc& desc, int position, int image_rank = 4);
  int Output(const TensorDesc& desc, int position);
  int Internal(const TensorDesc& like);
};

// The graph of an op, by the engine that is preferred for it.
using MakeGraph = BoundGraph (*)(const BoundOp& op);
Candidate CudnnCandidate(std::shared_ptr<CudnnCache> cache, MakeGraph make,
                         bool deterministic);

// What a plan sets aside for an engine: at least so much that another device of
// the target may prefer another one.
int64_t PlannedWorkspace(const CudnnEngine& engine);

// Adds a node of one of the three kinds of convolutions.
void AddConvNode(CudnnNode::Kind kind, const ConvShape& shape,
                 std::vector<int> inputs, int output, CudnnGraph* graph);

// Of any convolution, transposed one or gradient of one.
BoundGraph ConvGraph(const BoundOp& op);
// Of the pattern conv_bias_relu.
BoundGraph ConvBiasReluGraph(const BoundOp& fusion);

void RegisterCudaCudnn(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CONV_CUDNN_H_

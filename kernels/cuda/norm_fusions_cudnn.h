// The patterns norm_conv_stats, conv_stats, norm_conv_grad_filter,
// conv_grad_norm and conv_grad_add_norm: a graph of norm_cudnn.h with what it
// needs on vectors and filters.
#ifndef HALFTONE_KERNELS_CUDA_NORM_FUSIONS_CUDNN_H_
#define HALFTONE_KERNELS_CUDA_NORM_FUSIONS_CUDNN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/conv_cudnn.h"
#include "kernels/cuda/cudnn_cache.h"
#include "kernels/cuda/permutation.h"

namespace halftone {
namespace kernels {
namespace cuda {

// A fusion bound to its graph. Places in the workspace are offsets in bytes,
// multiples of 256; positions are flat ones of the fusion's arguments and
// results.
struct NormFusion {
  BoundGraph graph;

  // Before the graph: vectors of [in_channels].
  int64_t in_channels = 0;
  float epsilon = 0;
  int scale = -1, bias = -1, mean = -1, variance = -1;  // arguments
  int64_t factor = -1, offset = -1;  // f16, in the workspace; -1: not needed
  // f32 of 1 / deviation, in the workspace.
  struct Deviation {
    int variance;  // argument
    float epsilon;
    int64_t to;
  };
  std::vector<Deviation> deviations;

  // After it: statistics of [out_channels], from the library's plain sums.
  int64_t out_channels = 0;
  float count = 0;
  int64_t sum = -1, squared_sum = -1;  // in the workspace; -1: there are none
  // Results, or where nobody reads them.
  BoundGraph::Source batch_mean, batch_variance;
  int count_out = -1;  // a result

  // The filter in channels_last, in the workspace: made of the argument before
  // the graph, or made the result after it; -1: it lies where it is.
  Permutation filter_move;
  int64_t filter = -1;
  BoundGraph::Source filter_outside;

  // What all these take; the library's own workspace comes after them.
  int64_t own_bytes = 0;
  // Whether its graph can take it: images and filter are f16, and what the
  // graph makes is a result of the fusion.
  bool possible = false;
};
NormFusion BindNormFusion(const BoundOp& fusion);

void RegisterCudnnNormFusions(KernelRegistry& registry,
                              std::shared_ptr<CudnnCache> cache);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_NORM_FUSIONS_CUDNN_H_

// Ops that move elements: reshapes. Others have files of their own:
// shape_channels.cu, shape_transpose.cu, join.cu, move.cu.
#include <vector>

#include "kernels/common/shapes.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/register_all.h"
#include "kernels/cuda/shape.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

auto MakeReshape(const BoundOp& op) {
  return [bytes = op.outputs()[0].bytes()](const Buffers& buffers,
                                           Launcher& launch) {
    launch.Copy(buffers.outputs[0], buffers.inputs[0], bytes);
  };
}

}  // namespace

void RegisterCudaShape(KernelRegistry& registry) {
  for (const char* op :
       {"reshape", "reshape_like", "flatten", "squeeze", "unsqueeze"}) {
    AddForSchema(registry, op, CudaCandidate("copy", MakeReshape));
  }
  RegisterCudaPadChannels(registry);
  RegisterCudaTranspose(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#include "kernels/cuda/cudnn_graph.h"

#include <algorithm>
#include <utility>

#include "kernels/common/strides.h"

namespace halftone {
namespace kernels {
namespace cuda {

int CudnnGraph::Add(const TensorDesc& desc, int image_rank) {
  CudnnTensor tensor;
  tensor.dtype = desc.dtype;
  if (desc.rank() == 1) {  // one per channel
    const int64_t n = desc.dims[0];
    tensor.dims.assign(std::max(4, image_rank), 1);
    tensor.strides.assign(tensor.dims.size(), n);
    tensor.dims[1] = n;
    tensor.strides[1] = 1;
  } else {
    const Extents strides = StridesOf(desc);
    tensor.dims.assign(desc.dims.begin(), desc.dims.end());
    tensor.strides.assign(strides.begin(), strides.end());
    if (desc.rank() == 3) {
      tensor.dims.insert(tensor.dims.begin() + 2, 1);
      tensor.strides.insert(tensor.strides.begin() + 2,
                            tensor.dims[3] * tensor.strides[3]);
    }
  }
  tensors.push_back(std::move(tensor));
  return static_cast<int>(tensors.size()) - 1;
}

int CudnnGraph::AddInternal(const TensorDesc& like) {
  const int position = Add(like);
  tensors[position].dtype = DType::kF32;
  tensors[position].internal = true;
  return position;
}

void CudnnGraph::Add(CudnnNode::Kind kind, std::vector<int> inputs,
                     std::vector<int> outputs) {
  CudnnNode node;
  node.kind = kind;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  nodes.push_back(std::move(node));
}

bool CudnnGraph::HasElements() const {
  for (const CudnnTensor& tensor : tensors) {
    for (int64_t d : tensor.dims) {
      if (d == 0) return false;
    }
  }
  return true;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

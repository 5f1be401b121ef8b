#include "kernels/cpu/reference.h"

#include <utility>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"

namespace halftone {
namespace kernels {
namespace {

ReferenceTensor Shape(const TensorDesc& desc) {
  return {nullptr, Extents(desc.dims.begin(), desc.dims.end()),
          StridesOf(desc)};
}

struct Staged {
  DType dtype;
  int64_t elements, offset;  // floats from the workspace's start
};

}  // namespace

Candidate ReferenceCandidate(
    std::function<ReferenceBody(const BoundOp&)> make) {
  Candidate candidate = MakeCandidate("reference", [make](const BoundOp& op) {
    ReferenceCall call;
    std::vector<Staged> inputs, outputs;
    int64_t end = 0;
    const auto stage = [&end](const TensorDesc& desc) {
      const Staged staged = {desc.dtype, desc.elements(), end};
      end += desc.elements();
      return staged;
    };
    for (const TensorDesc& desc : op.inputs()) {
      call.inputs.push_back(Shape(desc));
      inputs.push_back(stage(desc));
    }
    for (const TensorDesc& desc : op.outputs()) {
      call.outputs.push_back(Shape(desc));
      outputs.push_back(stage(desc));
    }
    return [call, inputs, outputs, body = make(op)](const Buffers& buffers,
                                                    runtime::Stream&) mutable {
      float* workspace = static_cast<float*>(buffers.workspace);
      for (size_t i = 0; i < inputs.size(); ++i) {
        call.inputs[i].data = workspace + inputs[i].offset;
        ToFloat(inputs[i].dtype, buffers.inputs[i], call.inputs[i].data,
                inputs[i].elements);
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        call.outputs[i].data = workspace + outputs[i].offset;
      }
      body(call);
      for (size_t i = 0; i < outputs.size(); ++i) {
        FromFloat(outputs[i].dtype, call.outputs[i].data, buffers.outputs[i],
                  outputs[i].elements);
      }
    };
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    int64_t elements = 0;
    for (const TensorDesc& desc : op.inputs()) elements += desc.elements();
    for (const TensorDesc& desc : op.outputs()) elements += desc.elements();
    return elements * int64_t{sizeof(float)};
  };
  return candidate;
}

}  // namespace kernels
}  // namespace halftone

#include "kernels/cuda/conv_cudnn.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/base/error.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
#include "kernels/cuda/attention_cudnn.h"
#include "kernels/cuda/convs.h"
#include "kernels/cuda/norm_fusions_cudnn.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Kind = CudnnNode::Kind;

// cuBLASLt's products use as much of the same arena.
constexpr int64_t kLeastWorkspace = int64_t{32} << 20;

// Where a forward convolution finds its inputs.
struct ConvInputs {
  int image, filter, bias;
};

BoundGraph ForwardGraph(const ConvOp& conv, const ConvInputs& at,
                        const BoundOp& op, bool relu) {
  BoundGraph bound;
  const int image = bound.Input(conv.image_desc, at.image);
  const int filter = bound.Input(conv.filter_desc, at.filter);
  const TensorDesc& out = conv.result_desc;
  const bool biased = at.bias >= 0;
  int value = biased || relu ? bound.Internal(out) : bound.Output(out, 0);
  AddConvNode(Kind::kConv, conv.shape, {image, filter}, value, &bound.graph);
  if (biased) {
    const int bias = bound.Input(op.inputs()[at.bias], at.bias, out.rank());
    const int sum = relu ? bound.Internal(out) : bound.Output(out, 0);
    bound.graph.Add(Kind::kAdd, {value, bias}, {sum});
    value = sum;
  }
  if (relu) bound.graph.Add(Kind::kRelu, {value}, {bound.Output(out, 0)});
  return bound;
}

class ConvInstance final : public KernelInstance {
 public:
  ConvInstance(std::shared_ptr<CudnnPlan> plan,
               std::vector<BoundGraph::Source> sources, absl::string_view op)
      : plan_(std::move(plan)),
        sources_(std::move(sources)),
        op_(op),
        data_(sources_.size(), nullptr) {}

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    for (size_t i = 0; i < sources_.size(); ++i) {
      const BoundGraph::Source& from = sources_[i];
      if (from.position < 0) continue;
      // The library takes no pointers to const.
      data_[i] = from.output ? buffers.outputs[from.position]
                             : const_cast<void*>(buffers.inputs[from.position]);
    }
    return plan_->Enqueue(data_, buffers.workspace, stream, op_);
  }

 private:
  std::shared_ptr<CudnnPlan> plan_;
  std::vector<BoundGraph::Source> sources_;
  std::string op_;
  std::vector<void*> data_;
};

}  // namespace

int64_t PlannedWorkspace(const CudnnEngine& engine) {
  return std::max(engine.workspace_bytes, kLeastWorkspace);
}

void AddConvNode(Kind kind, const ConvShape& shape, std::vector<int> inputs,
                 int output, CudnnGraph* graph) {
  graph->Add(kind, std::move(inputs), {output});
  CudnnNode& node = graph->nodes.back();
  // The library has images of two spatial dims or three.
  for (int i = shape.spatial == 3 ? 0 : 1; i < 3; ++i) {
    const ConvDim& dim = shape.volume[i];
    node.stride.push_back(dim.stride);
    node.dilation.push_back(dim.dilation);
    node.before.push_back(dim.before);
    node.after.push_back(dim.after);
  }
}

Candidate CudnnCandidate(std::shared_ptr<CudnnCache> cache, MakeGraph make,
                         bool deterministic) {
  const auto graph_of = [make, deterministic](const BoundOp& op) {
    BoundGraph bound = make(op);
    bound.graph.deterministic = deterministic;
    return bound;
  };
  Candidate candidate;
  candidate.name = deterministic ? "cudnn" : "cudnn_any";
  candidate.deterministic = deterministic;
  // What is wrong with the library itself is said by Prepare.
  candidate.supports = [cache, graph_of](const BoundOp& op) {
    const BoundGraph bound = graph_of(op);
    return bound.graph.HasElements() &&
           !absl::IsUnimplemented(
               cache->Choose(bound.graph, op.context().target).status());
  };
  candidate.workspace_bytes = [cache, graph_of](const BoundOp& op) -> int64_t {
    const auto engine = cache->Choose(graph_of(op).graph, op.context().target);
    return PlannedWorkspace(engine.ok() ? *engine : CudnnEngine());
  };
  candidate.prepare = [cache, graph_of](const BoundOp& op,
                                        runtime::Device& device)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    BoundGraph bound = graph_of(op);
    HT_ASSIGN_OR_RETURN(const CudnnEngine engine,
                        cache->Choose(bound.graph, op.context().target));
    HT_ASSIGN_OR_RETURN(
        auto plan, cache->PlanOf(bound.graph, device, PlannedWorkspace(engine),
                                 op.name()));
    return std::unique_ptr<KernelInstance>(
        new ConvInstance(std::move(plan), std::move(bound.sources), op.name()));
  };
  return candidate;
}

int BoundGraph::Input(const TensorDesc& desc, int position, int image_rank) {
  sources.push_back({position, false});
  return graph.Add(desc, image_rank);
}
int BoundGraph::Output(const TensorDesc& desc, int position) {
  sources.push_back({position, true});
  return graph.Add(desc);
}
int BoundGraph::Internal(const TensorDesc& like) {
  sources.push_back({});
  return graph.AddInternal(like);
}

BoundGraph ConvGraph(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  const int rank = conv.image_desc.rank();
  if (conv.computed == ConvResult::kResult) {
    return ForwardGraph(conv, {conv.image, conv.filter, conv.bias}, op,
                        /*relu=*/false);
  }
  BoundGraph bound;
  const int grad = bound.Input(conv.result_desc, conv.result);
  if (conv.computed == ConvResult::kImage) {
    const int filter = bound.Input(conv.filter_desc, conv.filter);
    const bool biased = conv.bias >= 0;
    const int image = biased ? bound.Internal(conv.image_desc)
                             : bound.Output(conv.image_desc, conv.image);
    AddConvNode(Kind::kConvGradImage, conv.shape, {grad, filter}, image,
                &bound.graph);
    if (biased) {
      const int bias = bound.Input(op.inputs()[conv.bias], conv.bias, rank);
      bound.graph.Add(Kind::kAdd, {image, bias},
                      {bound.Output(conv.image_desc, conv.image)});
    }
  } else {
    const int image = bound.Input(conv.image_desc, conv.image);
    AddConvNode(Kind::kConvGradFilter, conv.shape, {grad, image},
                bound.Output(conv.filter_desc, conv.filter), &bound.graph);
  }
  return bound;
}

BoundGraph ConvBiasReluGraph(const BoundOp& fusion) {
  const BoundOp conv = FusedOp(fusion).Of("conv");
  return ForwardGraph(
      ConvOp::Of(conv),
      {ArgumentPosition(conv, "Input"), ArgumentPosition(conv, "Filter"),
       ArgumentPosition(conv, "Bias")},
      fusion, /*relu=*/true);
}

void RegisterCudaCudnn(KernelRegistry& registry) {
  const auto cache = std::make_shared<CudnnCache>();
  const Candidate conv = CudnnCandidate(cache, ConvGraph, true);
  const Candidate any = CudnnCandidate(cache, ConvGraph, false);
  // Where sums may be taken in any order, those engines come first.
  AddCudaConvs(registry, {{conv}, {any, conv}, {any, conv}, {any, conv}});
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const Layout images[] = {Layout::kRowMajor, Layout::kChannelsLast};
  registry.AddPattern("conv_bias_relu", dtypes, images,
                      CudnnCandidate(cache, ConvBiasReluGraph, true));
  RegisterCudnnNormFusions(registry, cache);
  RegisterCudnnAttention(registry, cache);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

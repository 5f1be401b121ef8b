#include "kernels/cuda/norm_fusions_cudnn.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/base/error.h"
#include "graph/base/layout.h"
#include "kernels/cuda/norm_cudnn.h"
#include "kernels/cuda/norm_vectors.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Source = BoundGraph::Source;

class Binder {
 public:
  explicit Binder(const BoundOp& fusion) : fused_(fusion) {}

  NormFusion Bind() {
    const std::string& pattern = fused_.pattern();
    const BoundOp conv = fused_.Of("conv");
    if (pattern != "conv_stats") {
      norm_ = std::make_unique<BoundOp>(fused_.Of("norm"));
    }
    if (pattern == "conv_grad_norm") {
      BindGradNorm(conv);
    } else if (pattern == "conv_grad_add_norm") {
      BindGradAddNorm(conv);
    } else if (pattern == "norm_conv_grad_filter") {
      BindGradFilter(conv);
    } else {
      BindForward(conv, fused_.Of("stats"));
    }
    return std::move(bound_);
  }

 private:
  static Source Argument(const BoundOp& op, absl::string_view slot) {
    return {ArgumentPosition(op, slot), false};
  }
  int64_t Place(int64_t bytes) {
    const int64_t at = bound_.own_bytes;
    bound_.own_bytes += runtime::Aligned(bytes);
    return at;
  }
  static Source InWorkspace(int64_t at) {
    Source source;
    source.scratch = at;
    return source;
  }
  // A vector of f32: a result, or in the workspace if nobody reads it.
  Source Result(const BoundOp& op, absl::string_view slot, int64_t channels) {
    const int position = ResultPosition(op, slot);
    if (position >= 0) return {position, true};
    return InWorkspace(Place(channels * SizeOf(DType::kF32)));
  }

  static bool IsHalf(const ConvOp& conv) {
    return conv.image_desc.dtype == DType::kF16 &&
           conv.filter_desc.dtype == DType::kF16;
  }
  void BindNorm() {
    bound_.in_channels = norm_->inputs()[0].dims[1];
    bound_.epsilon = static_cast<float>(norm_->Float("epsilon"));
    bound_.scale = ArgumentPosition(*norm_, "Scale");
    bound_.bias = ArgumentPosition(*norm_, "Bias");
    bound_.mean = ArgumentPosition(*norm_, "Mean");
    bound_.variance = ArgumentPosition(*norm_, "Variance");
  }
  // The image that a convolution reads, behind a norm or as it is.
  void AddImage(const BoundOp& conv, std::vector<Source>* inputs) {
    if (norm_ == nullptr) {
      inputs->push_back(Argument(conv, "Input"));
      return;
    }
    BindNorm();
    const int64_t bytes = bound_.in_channels * SizeOf(DType::kF16);
    bound_.factor = Place(bytes);
    bound_.offset = Place(bytes);
    inputs->push_back(Argument(*norm_, "X"));
    inputs->push_back(InWorkspace(bound_.factor));
    inputs->push_back(InWorkspace(bound_.offset));
  }
  // The graph's filter, which is the convolution's at `outside`, is in the
  // layout that the library wants.
  Source Filter(ConvOp* conv, const Source& outside) {
    TensorDesc& desc = conv->filter_desc;
    // Without area both layouts are one.
    const int64_t area = desc.dims[2] * desc.dims[3];
    if (desc.layout == Layout::kChannelsLast || area == 1) return outside;
    const TensorDesc row_major = desc;
    desc.layout = Layout::kChannelsLast;
    bound_.filter_move = outside.output
                             ? Permutation(row_major, StridesOf(desc))
                             : Permutation(desc, StridesOf(row_major));
    bound_.filter_outside = outside;
    bound_.filter = Place(desc.bytes());
    return InWorkspace(bound_.filter);
  }
  // The graph counts its inputs and outputs in order; they lie here.
  void SetGraph(BoundGraph graph, const std::vector<Source>& inputs,
                const std::vector<Source>& outputs) {
    for (const Source& input : inputs) {
      if (input.position < 0 && input.scratch < 0) bound_.possible = false;
    }
    for (Source& source : graph.sources) {
      if (source.position < 0) continue;
      source = (source.output ? outputs : inputs)[source.position];
    }
    bound_.graph = std::move(graph);
  }

  void BindForward(const BoundOp& conv_op, const BoundOp& stats) {
    ConvOp conv = ConvOp::Of(conv_op);
    std::vector<Source> inputs;
    AddImage(conv_op, &inputs);
    inputs.push_back(Filter(&conv, Argument(conv_op, "Filter")));
    const TensorDesc& out = conv.result_desc;
    bound_.out_channels = out.dims[1];
    const int64_t bytes = bound_.out_channels * SizeOf(DType::kF32);
    bound_.sum = Place(bytes);
    bound_.squared_sum = Place(bytes);
    bound_.batch_mean = Result(stats, "Mean", bound_.out_channels);
    bound_.batch_variance = Result(stats, "Variance", bound_.out_channels);
    bound_.count_out = ResultPosition(stats, "Count");
    bound_.count = out.dims[1] == 0
                       ? 0.0f
                       : static_cast<float>(out.elements() / out.dims[1]);
    const int result = ResultPosition(conv_op, "Output");
    bound_.possible = result >= 0 && IsHalf(conv);
    SetGraph(NormConvGraph(conv, norm_ != nullptr), inputs,
             {{result, true},
              InWorkspace(bound_.sum),
              InWorkspace(bound_.squared_sum)});
  }

  void BindGradFilter(const BoundOp& conv_op) {
    ConvOp conv = ConvOp::Of(conv_op);
    std::vector<Source> inputs;
    AddImage(conv_op, &inputs);
    inputs.push_back(Argument(conv_op, "OutputGrad"));
    const int result = ResultPosition(conv_op, "FilterGrad");
    bound_.possible = result >= 0 && IsHalf(conv);
    const Source filter = Filter(&conv, {result, true});
    SetGraph(NormConvGradFilterGraph(conv), inputs, {filter});
  }

  // A norm in f32 that is made again, and the sums over its gradient.
  void AddNorm(const BoundOp& norm, const BoundOp& sums,
               std::vector<Source>* inputs, std::vector<Source>* outputs) {
    const int64_t channels = norm.inputs()[0].dims[1];
    const int64_t bytes = channels * SizeOf(DType::kF32);
    const int64_t deviation = Place(bytes);
    bound_.in_channels = channels;
    bound_.deviations.push_back({ArgumentPosition(norm, "Variance"),
                                 static_cast<float>(norm.Float("epsilon")),
                                 deviation});
    inputs->insert(
        inputs->end(),
        {Argument(norm, "X"), Argument(norm, "Mean"), InWorkspace(deviation),
         Argument(norm, "Scale"), Argument(norm, "Bias")});
    outputs->push_back(Result(sums, "ScaleGrad", channels));
    outputs->push_back(Result(sums, "BiasGrad", channels));
    // The coefficients are those of one rank: made again outside.
    for (int i = 0; i < 3; ++i) outputs->push_back(InWorkspace(Place(bytes)));
  }

  // Inputs of a convolution's gradient, and the masked gradient.
  void BeginGrad(const BoundOp& conv_op, ConvOp* conv,
                 std::vector<Source>* inputs, std::vector<Source>* outputs) {
    const int result = ResultPosition(fused_.Of("mask"), "XGrad");
    bound_.possible = result >= 0 && IsHalf(*conv);
    *outputs = {{result, true}};
    *inputs = {Argument(conv_op, "OutputGrad"),
               Filter(conv, Argument(conv_op, "Filter"))};
  }

  void BindGradNorm(const BoundOp& conv_op) {
    ConvOp conv = ConvOp::Of(conv_op);
    std::vector<Source> inputs, outputs;
    BeginGrad(conv_op, &conv, &inputs, &outputs);
    AddNorm(*norm_, fused_.Of("sums"), &inputs, &outputs);
    SetGraph(ConvGradNormGraph(conv), inputs, outputs);
  }

  void BindGradAddNorm(const BoundOp& conv_op) {
    ConvOp conv = ConvOp::Of(conv_op);
    std::vector<Source> inputs, outputs;
    BeginGrad(conv_op, &conv, &inputs, &outputs);
    const AddedToNorm added = {fused_.Has("parts"), fused_.Has("other_norm")};
    if (added.gradient) {
      const BoundOp parts = fused_.Of("parts");
      const int first = ArgumentPosition(parts, "X", 0);
      inputs.push_back(
          {first >= 0 ? first : ArgumentPosition(parts, "X", 1), false});
    }
    AddNorm(*norm_, fused_.Of("sums"), &inputs, &outputs);
    if (added.norm) {
      AddNorm(fused_.Of("other_norm"), fused_.Of("other_sums"), &inputs,
              &outputs);
    } else {
      const BoundOp add = fused_.Of("add");
      inputs.push_back(Argument(add, Reads(add, "X", *norm_) ? "Y" : "X"));
    }
    SetGraph(ConvGradAddNormGraph(conv, added), inputs, outputs);
  }

  FusedOp fused_;
  std::unique_ptr<BoundOp> norm_;  // before the convolution, if there is one
  NormFusion bound_;
};

class NormFusionInstance final : public KernelInstance {
 public:
  NormFusionInstance(NormFusion bound, std::shared_ptr<CudnnPlan> plan,
                     absl::string_view op)
      : bound_(std::move(bound)),
        plan_(std::move(plan)),
        op_(op),
        data_(bound_.graph.sources.size(), nullptr) {}

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    HT_RETURN_IF_ERROR(EnqueueBefore(buffers, stream));
    for (size_t i = 0; i < data_.size(); ++i) {
      data_[i] = At(bound_.graph.sources[i], buffers);
    }
    HT_RETURN_IF_ERROR(plan_->Enqueue(
        data_, InWorkspace(buffers, bound_.own_bytes), stream, op_));
    return EnqueueAfter(buffers, stream);
  }

 private:
  static void* InWorkspace(const Buffers& buffers, int64_t at) {
    return static_cast<char*>(buffers.workspace) + at;
  }
  static const float* Floats(const Buffers& buffers, int argument) {
    return static_cast<const float*>(buffers.inputs[argument]);
  }
  static void* At(const Source& from, const Buffers& buffers) {
    if (from.scratch >= 0) return InWorkspace(buffers, from.scratch);
    if (from.position < 0) return nullptr;
    // The library takes no pointers to const.
    return from.output ? buffers.outputs[from.position]
                       : const_cast<void*>(buffers.inputs[from.position]);
  }

  absl::Status EnqueueBefore(const Buffers& buffers, runtime::Stream& stream) {
    if (bound_.filter >= 0 && !bound_.filter_outside.output) {
      HT_RETURN_IF_ERROR(
          Permute(bound_.filter_move, At(bound_.filter_outside, buffers),
                  InWorkspace(buffers, bound_.filter), stream, op_));
    }
    if (bound_.factor >= 0) {
      const HalfFactorsCall call{
          Floats(buffers, bound_.scale),
          Floats(buffers, bound_.bias),
          Floats(buffers, bound_.mean),
          Floats(buffers, bound_.variance),
          bound_.epsilon,
          bound_.in_channels,
          static_cast<half*>(InWorkspace(buffers, bound_.factor)),
          static_cast<half*>(InWorkspace(buffers, bound_.offset))};
      HT_RETURN_IF_ERROR(cuda::Enqueue(call, stream, op_));
    }
    for (const NormFusion::Deviation& deviation : bound_.deviations) {
      const DeviationsCall call{
          Floats(buffers, deviation.variance), deviation.epsilon,
          bound_.in_channels,
          static_cast<float*>(InWorkspace(buffers, deviation.to))};
      HT_RETURN_IF_ERROR(cuda::Enqueue(call, stream, op_));
    }
    return absl::OkStatus();
  }

  absl::Status EnqueueAfter(const Buffers& buffers, runtime::Stream& stream) {
    if (bound_.filter >= 0 && bound_.filter_outside.output) {
      HT_RETURN_IF_ERROR(
          Permute(bound_.filter_move, InWorkspace(buffers, bound_.filter),
                  At(bound_.filter_outside, buffers), stream, op_));
    }
    if (bound_.sum < 0) return absl::OkStatus();
    const StatsOfSumsCall call{
        static_cast<float*>(InWorkspace(buffers, bound_.sum)),
        static_cast<float*>(InWorkspace(buffers, bound_.squared_sum)),
        bound_.count,
        bound_.out_channels,
        static_cast<float*>(At(bound_.batch_mean, buffers)),
        static_cast<float*>(At(bound_.batch_variance, buffers)),
        bound_.count_out < 0
            ? nullptr
            : static_cast<float*>(buffers.outputs[bound_.count_out])};
    return cuda::Enqueue(call, stream, op_);
  }

  NormFusion bound_;
  std::shared_ptr<CudnnPlan> plan_;
  std::string op_;
  std::vector<void*> data_;
};

Candidate MakeCandidate(std::shared_ptr<CudnnCache> cache) {
  Candidate candidate;
  candidate.name = "cudnn";
  // What is wrong with the library itself is said by Prepare.
  candidate.supports = [cache](const BoundOp& op) {
    const NormFusion bound = BindNormFusion(op);
    const CudnnGraph& graph = bound.graph.graph;
    return bound.possible && graph.HasElements() &&
           !absl::IsUnimplemented(
               cache->Choose(graph, op.context().target).status());
  };
  candidate.workspace_bytes = [cache](const BoundOp& op) -> int64_t {
    const NormFusion bound = BindNormFusion(op);
    const auto engine = cache->Choose(bound.graph.graph, op.context().target);
    return bound.own_bytes +
           PlannedWorkspace(engine.ok() ? *engine : CudnnEngine());
  };
  candidate.prepare = [cache](const BoundOp& op, runtime::Device& device)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    NormFusion bound = BindNormFusion(op);
    const CudnnGraph& graph = bound.graph.graph;
    HT_ASSIGN_OR_RETURN(const CudnnEngine engine,
                        cache->Choose(graph, op.context().target));
    HT_ASSIGN_OR_RETURN(
        auto plan,
        cache->PlanOf(graph, device, PlannedWorkspace(engine), op.name()));
    return std::unique_ptr<KernelInstance>(
        new NormFusionInstance(std::move(bound), std::move(plan), op.name()));
  };
  return candidate;
}

}  // namespace

NormFusion BindNormFusion(const BoundOp& fusion) {
  return Binder(fusion).Bind();
}

// Libraries fuse such images alone (norm_cudnn_test.cc).
void RegisterCudnnNormFusions(KernelRegistry& registry,
                              std::shared_ptr<CudnnCache> cache) {
  const Candidate candidate = MakeCandidate(std::move(cache));
  for (const char* pattern :
       {"norm_conv_stats", "conv_stats", "norm_conv_grad_filter",
        "conv_grad_norm", "conv_grad_add_norm"}) {
    registry.AddPattern(pattern, {DType::kF16}, {Layout::kChannelsLast},
                        candidate);
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

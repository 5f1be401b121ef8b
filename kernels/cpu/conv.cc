// Convolutions and their gradients through oneDNN.
#include "kernels/cpu/conv.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/conv_packed.h"
#include "kernels/cpu/conv_reference.h"
#include "kernels/cpu/conv_winograd.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using dnnl::memory;
using Descs = std::vector<memory::desc>;

// The attributes as oneDNN has them: dilations count skipped elements.
struct Geometry {
  memory::dims strides, dilations, before, after;
};

Geometry GeometryOf(const ConvShape& shape) {
  Geometry g;
  for (int i = 0; i < shape.spatial; ++i) {
    const ConvDim& dim = shape.dims()[i];
    g.strides.push_back(dim.stride);
    g.dilations.push_back(dim.dilation - 1);
    g.before.push_back(dim.before);
    g.after.push_back(dim.after);
  }
  return g;
}

// A filter [O, C / groups, ...] with its groups as a dim of their own.
OnednnOperand Filter(int position, bool output, const TensorDesc& desc, int arg,
                     int64_t groups) {
  OnednnOperand filter = MakeOperand(arg, position, output, desc);
  if (groups > 1) {
    const int64_t per_group = filter.dims[0] / groups;
    filter.dims[0] = per_group;
    filter.dims.insert(filter.dims.begin(), groups);
    filter.strides.insert(filter.strides.begin(),
                          per_group * filter.strides[0]);
  }
  return filter;
}

dnnl::convolution_forward::primitive_desc ForwardHint(
    const dnnl::engine& engine, const Geometry& g, const memory::desc& src,
    const memory::desc& weights, const memory::desc& dst) {
  return {
      {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
       src, weights, dst, g.strides, g.dilations, g.before, g.after},
      engine};
}

// Of the gradient of Input, and of what is transposed without a bias.
OnednnSpec GradInput(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  OnednnSpec spec;
  spec.operands = {
      MakeOperand(DNNL_ARG_DIFF_DST, conv.result, false, conv.result_desc),
      Filter(conv.filter, false, conv.filter_desc, DNNL_ARG_WEIGHTS,
             conv.shape.groups),
      MakeOperand(DNNL_ARG_DIFF_SRC, conv.image, true, conv.image_desc)};
  spec.describe = [g = GeometryOf(conv.shape)](
                      const dnnl::engine& engine, const Descs& d,
                      const dnnl::primitive_attr& attr) {
    const auto hint = ForwardHint(engine, g, d[2], d[1], d[0]);
    return dnnl::convolution_backward_data::primitive_desc(
        {dnnl::algorithm::convolution_direct, d[2], d[1], d[0], g.strides,
         g.dilations, g.before, g.after},
        attr, engine, hint);
  };
  return spec;
}

// oneDNN has the channels of a transposed convolution's results first.
OnednnOperand Swapped(OnednnOperand filter, bool grouped) {
  std::swap(filter.dims[grouped], filter.dims[grouped + 1]);
  std::swap(filter.strides[grouped], filter.strides[grouped + 1]);
  return filter;
}

OnednnSpec Transpose(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  if (conv.bias < 0) return GradInput(op);
  OnednnSpec spec;
  spec.operands = {
      MakeOperand(DNNL_ARG_SRC, conv.result, false, conv.result_desc),
      Swapped(Filter(conv.filter, false, conv.filter_desc, DNNL_ARG_WEIGHTS,
                     conv.shape.groups),
              conv.shape.groups > 1),
      MakeOperand(DNNL_ARG_DST, conv.image, true, conv.image_desc),
      MakeOperand(DNNL_ARG_BIAS, conv.bias, false, op.inputs()[conv.bias])};
  spec.describe = [g = GeometryOf(conv.shape)](
                      const dnnl::engine& engine, const Descs& d,
                      const dnnl::primitive_attr& attr) {
    return dnnl::deconvolution_forward::primitive_desc(
        {dnnl::prop_kind::forward_training,
         dnnl::algorithm::deconvolution_direct, d[0], d[1], d[3], d[2],
         g.strides, g.dilations, g.before, g.after},
        attr, engine);
  };
  return spec;
}

OnednnSpec GradFilter(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  OnednnSpec spec;
  spec.operands = {
      MakeOperand(DNNL_ARG_SRC, conv.image, false, conv.image_desc),
      MakeOperand(DNNL_ARG_DIFF_DST, conv.result, false, conv.result_desc),
      Filter(conv.filter, true, conv.filter_desc, DNNL_ARG_DIFF_WEIGHTS,
             conv.shape.groups)};
  spec.describe = [g = GeometryOf(conv.shape)](
                      const dnnl::engine& engine, const Descs& d,
                      const dnnl::primitive_attr& attr) {
    // There is no forward pass with filters of another type than the images.
    memory::desc filter = d[2];
    filter.data.data_type = d[0].data.data_type;
    const auto hint = ForwardHint(engine, g, d[0], filter, d[1]);
    return dnnl::convolution_backward_weights::primitive_desc(
        {dnnl::algorithm::convolution_direct, d[0], d[2], d[1], g.strides,
         g.dilations, g.before, g.after},
        attr, engine, hint);
  };
  return spec;
}

OnednnSpec Forward(const BoundOp& op) {
  return ConvForward(op, {op.InputIndex("Input"), op.InputIndex("Filter"),
                          op.InputIndex("Bias")});
}

bool IsFilter(const OnednnOperand& operand) {
  return operand.arg == DNNL_ARG_WEIGHTS ||
         operand.arg == DNNL_ARG_DIFF_WEIGHTS;
}

bool IsImage(const OnednnOperand& operand) {
  switch (operand.arg) {
    case DNNL_ARG_SRC:
    case DNNL_ARG_DST:
    case DNNL_ARG_DIFF_SRC:
    case DNNL_ARG_DIFF_DST:
      return true;
    default:
      return false;
  }
}

// Whether filters are of one element for each pair of channels, or of one
// channel: that of an image, or each of its own.
bool IsPointwiseOrOfOneChannel(const OnednnSpec& spec) {
  return std::all_of(
      spec.operands.begin(), spec.operands.end(), [](const auto& operand) {
        const auto& dims = operand.dims;
        const size_t n = dims.size();
        return !IsFilter(operand) || dims[n - 1] * dims[n - 2] == 1 ||
               (n == 5 ? dims[1] * dims[2] : dims[1]) == 1;
      });
}

bool IsChannelsLast(const OnednnOperand& image) {
  return image.dims.size() == 4 && image.strides[1] == 1;
}

// Filters are never channels-last for the library, so they go where it likes
// them; `stay`: channels-last images do not.
void ChooseFormats(OnednnSpec* spec, bool stay) {
  for (OnednnOperand& operand : spec->operands) {
    operand.format = stay && IsImage(operand) && IsChannelsLast(operand)
                         ? OnednnFormat::kBestAsItLies
                         : OnednnFormat::kAny;
  }
}

OnednnSpec Best(OnednnSpec spec) {
  ChooseFormats(&spec, OnednnHasAvx512() || IsPointwiseOrOfOneChannel(spec));
  return spec;
}

// Of row-major images there is code for row-major filters, too; of others only
// loops that take a thousand times as long.
OnednnSpec Plain(OnednnSpec spec) {
  const auto& operands = spec.operands;
  if (std::any_of(operands.begin(), operands.end(), [](const auto& operand) {
        return IsImage(operand) && IsChannelsLast(operand);
      })) {
    ChooseFormats(&spec, /*stay=*/true);
  }
  return spec;
}

void AddConv(KernelRegistry& registry, const std::string& op,
             OnednnSpec (*make)(const BoundOp&)) {
  for (const Candidate& candidate : ConvCandidates(make)) {
    AddForSchema(registry, op, candidate);
  }
}

// Of bf16 whose lines are shorter than a stride, oneDNN 2.6's code for
// avx512_bf16 adds memory that nobody wrote.
bool MakesGarbage(const ConvOp& conv) {
  const ConvDim& width = conv.shape.volume[2];
  return conv.image_desc.dtype == DType::kBF16 && width.image < width.stride;
}

void AddGradFilter(KernelRegistry& registry, const std::string& op) {
  for (const Candidate& candidate : ConvCandidates(GradFilter)) {
    AddForSchema(registry, op, OnlyWhere(candidate, [](const ConvOp& conv) {
                   return !MakesGarbage(conv);
                 }));
  }
}

}  // namespace

Candidate OnlyWhere(const Candidate& candidate,
                    const std::function<bool(const ConvOp&)>& holds) {
  Candidate part = candidate;
  part.supports = [holds, supported = candidate.supports](const BoundOp& op) {
    return holds(ConvOp::Of(op)) && supported(op);
  };
  return part;
}

bool OnednnIsAsWide(DType dtype) {
  return (dtype == DType::kF32 && OnednnHasAvx512()) ||
         (dtype == DType::kBF16 && OnednnHasBf16());
}

bool UsesAmx(DType dtype) { return dtype == DType::kBF16 && HasAmx(); }

double FilterShare(const ConvOp& conv) {
  const TensorDesc& made =
      conv.computed == ConvResult::kResult ? conv.result_desc : conv.image_desc;
  return static_cast<double>(conv.filter_desc.elements()) /
         static_cast<double>(std::max<int64_t>(1, made.elements()));
}

bool IsDepthwise(const ConvOp& conv) {
  const ConvShape& shape = conv.shape;
  return shape.channels == 1 && shape.filters == 1 && shape.groups > 1 &&
         conv.image_desc.elements() > 0 && conv.result_desc.elements() > 0 &&
         conv.filter_desc.elements() > 0;
}

bool HasDepthwiseGradFilter(const ConvOp& conv) {
  for (const ConvDim& dim : conv.shape.volume) {
    if (dim.filter > 3 || dim.dilation > 1) return false;
  }
  return conv.image_desc.dtype != DType::kBF16 || OnednnHasAvx512();
}

std::vector<Candidate> ConvCandidates(const MakeOnednnSpec& make) {
  return {OnednnCandidate("onednn",
                          [make](const BoundOp& op) { return Best(make(op)); }),
          OnednnCandidate("onednn_plain", [make](const BoundOp& op) {
            return Plain(make(op));
          })};
}

OnednnSpec ConvForward(const BoundOp& op, const ConvPositions& at) {
  const ConvShape shape = ConvOp::Of(op).shape;
  OnednnSpec spec;
  spec.operands = {
      MakeOperand(DNNL_ARG_SRC, at.input, false, op.Input("Input")),
      Filter(at.filter, false, op.Input("Filter"), DNNL_ARG_WEIGHTS,
             shape.groups),
      MakeOperand(DNNL_ARG_DST, 0, true, op.Output("Output"))};
  if (at.bias >= 0) {
    spec.operands.push_back(
        MakeOperand(DNNL_ARG_BIAS, at.bias, false, op.Input("Bias")));
  }
  spec.describe = [g = GeometryOf(shape), bias = at.bias >= 0](
                      const dnnl::engine& engine, const Descs& d,
                      const dnnl::primitive_attr& attr) {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    using Desc = dnnl::convolution_forward::desc;
    return dnnl::convolution_forward::primitive_desc(
        bias ? Desc(kind, algorithm, d[0], d[1], d[3], d[2], g.strides,
                    g.dilations, g.before, g.after)
             : Desc(kind, algorithm, d[0], d[1], d[2], g.strides, g.dilations,
                    g.before, g.after),
        attr, engine);
  };
  return spec;
}

void RegisterCpuConv(KernelRegistry& registry) {
  RegisterCpuConvTiles(registry);
  RegisterCpuConvLines(registry, /*before_onednn=*/true);
  RegisterCpuConvWinograd(registry);
  RegisterCpuConvProduct(registry, /*before_onednn=*/true);
  RegisterCpuConvPacked(registry, /*before_onednn=*/true);
  RegisterCpuConvDepthwise(registry, /*before_onednn=*/true);
  for (const std::string conv : {"conv1d", "conv2d", "conv3d"}) {
    AddConv(registry, conv, Forward);
    AddConv(registry, conv + "_transpose", Transpose);
    AddConv(registry, conv + "_grad_input", GradInput);
    AddGradFilter(registry, conv + "_grad_filter");
  }
  AddConv(registry, "depthwise_conv2d", Forward);
  AddConv(registry, "depthwise_conv2d_transpose", Transpose);
  RegisterCpuConvPacked(registry, /*before_onednn=*/false);
  RegisterCpuConvDepthwise(registry, /*before_onednn=*/false);
  RegisterCpuConvLines(registry, /*before_onednn=*/false);
  RegisterCpuConvProduct(registry, /*before_onednn=*/false);
  RegisterCpuConvReference(registry);
}

}  // namespace kernels
}  // namespace halftone

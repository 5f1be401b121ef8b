// Ops that normalise. Statistics and what is made of them are f32, whatever
// the dtype of X: a norm of 16 bits is computed in f32 and rounded once.
#include <numeric>
#include <string>
#include <vector>

#include "graph/export/onnx_rules.h"

namespace halftone {
namespace onnx_export {
namespace {

// The running statistics are inputs; so it is at test time.
void BatchNorm(SourceOp& op, const Rule&) {
  op.ExpectUnread("Y");
  op.Node("BatchNormalization")
      .In(op.In("X"))
      .In(op.In("Scale"))
      .In(op.In("Bias"))
      .In(op.In("Mean"))
      .In(op.In("Variance"))
      .Attr("epsilon", op.Float("epsilon"))
      .Out("Y");
}

// A list [n] in `dims`, or a constant where the op has none.
std::string InDims(SourceOp& op, absl::string_view slot, const Dims& dims,
                   double otherwise) {
  if (op.Has(slot)) return op.Reshaped(op.In(slot), op.DimsOf(slot), dims);
  IntList sizes;
  int64_t count = 1;
  for (const Dim& dim : dims) {
    sizes.push_back(dim.coefficient());
    count *= dim.coefficient();
  }
  return op.builder().Reals(std::vector<double>(count, otherwise), sizes,
                            DType::kF32);
}

void LayerNorm(SourceOp& op, const Rule&) {
  op.ExpectUnread("Y");
  const int64_t axis = op.Axis(op.Int("begin_norm_axis"), op.Rank("X"));
  const Dims dims(op.DimsOf("X").begin() + axis, op.DimsOf("X").end());
  const std::string x = Wide(op, "X");
  NodeMaker node = op.Node("LayerNormalization");
  node.In(x).In(InDims(op, "Scale", dims, 1));
  if (op.Has("Bias")) node.In(InDims(op, "Bias", dims, 0));
  node.Attr("axis", axis).Attr("epsilon", op.Float("epsilon"));
  FromWide(op, node.Made(), "Y");
}

std::string InstanceNormalized(SourceOp& op, const std::string& x,
                               const std::string& scale,
                               const std::string& bias) {
  return op.Node("InstanceNormalization")
      .In(x)
      .In(scale)
      .In(bias)
      .Attr("epsilon", op.Float("epsilon"))
      .Made();
}

void InstanceNorm(SourceOp& op, const Rule&) {
  op.ExpectUnread("Y");
  const Dims channels = {op.DimsOf("X")[1]};
  const std::string x = Wide(op, "X");
  FromWide(op,
           InstanceNormalized(op, x, InDims(op, "Scale", channels, 1),
                              InDims(op, "Bias", channels, 0)),
           "Y");
}

// Groups as the channels of an instance norm; then scale and bias, channel by
// channel: opset 17 has no op for it.
void GroupNorm(SourceOp& op, const Rule&) {
  op.ExpectUnread("Y");
  const Dims dims = op.DimsOf("X");
  const int64_t groups = op.Int("groups");
  Dim rest(1);
  for (size_t i = 1; i < dims.size(); ++i) rest = rest * dims[i];
  const Dims grouped = {dims[0], Dim(groups), Dim(rest.coefficient() / groups)};
  const auto all = [&](double value) {
    return op.builder().Reals(std::vector<double>(groups, value), {groups},
                              DType::kF32);
  };
  std::string y = InstanceNormalized(
      op, op.Reshaped(Wide(op, "X"), dims, grouped), all(1), all(0));
  y = op.Reshaped(y, grouped, dims);
  Dims channel(dims.size() - 1, Dim(1));
  channel[0] = dims[1];
  if (op.Has("Scale")) y = op.Make("Mul", y, InDims(op, "Scale", channel, 1));
  if (op.Has("Bias")) y = op.Make("Add", y, InDims(op, "Bias", channel, 0));
  FromWide(op, y, "Y");
}

void RmsNorm(SourceOp& op, const Rule&) {
  op.ExpectUnread("Y");
  const int rank = op.Rank("X");
  const int64_t axis = op.Axis(op.Int("begin_norm_axis"), rank);
  IntList axes(rank - axis);
  std::iota(axes.begin(), axes.end(), axis);
  const std::string x = Wide(op, "X");
  const std::string mean =
      op.Node("ReduceMean").In(op.Make("Mul", x, x)).Attr("axes", axes).Made();
  const std::string epsilon =
      op.builder().Number(op.Float("epsilon"), DType::kF32);
  const std::string root = op.Make("Sqrt", op.Make("Add", mean, epsilon));
  std::string y = op.Make("Div", x, root);
  const Dims dims(op.DimsOf("X").begin() + axis, op.DimsOf("X").end());
  if (op.Has("Scale")) y = op.Make("Mul", y, InDims(op, "Scale", dims, 1));
  FromWide(op, y, "Y");
}

// (X - mean) / std, channel by channel, in f32.
void ImageNormalize(SourceOp& op, const Rule&) {
  const auto list = [&](absl::string_view name) {
    const std::vector<double>& values = op.Floats(name);
    const int64_t count = static_cast<int64_t>(values.size());
    return op.builder().Reals(values, {count, 1, 1}, DType::kF32);
  };
  const std::string x = op.Cast(op.In("X"), op.dtype("X"), DType::kF32);
  const std::string made =
      op.Make("Div", op.Make("Sub", x, list("mean")), list("std"));
  op.Same(op.Cast(made, DType::kF32, op.OutType().dtype));
}

}  // namespace

const std::vector<Rule>& NormRules() {
  static const auto& rules = *new std::vector<Rule>{
      {"batch_norm", BatchNorm},           {"group_norm", GroupNorm},
      {"image_normalize", ImageNormalize}, {"instance_norm", InstanceNorm},
      {"layer_norm", LayerNorm},           {"rms_norm", RmsNorm},
      {"scale_bias", BatchNorm},           {"sync_batch_norm", BatchNorm},
  };
  return rules;
}

}  // namespace onnx_export
}  // namespace halftone

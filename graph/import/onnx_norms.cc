// Nodes that normalise.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/onnx_ops.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

// (X - mean) / sqrt(variance + epsilon) over axes.
std::string Normalized(OnnxNode& node, const std::string& x, IntList axes,
                       double epsilon) {
  const std::string mean = OnnxReduce(node, "reduce_mean", x, axes);
  const std::string centred = OnnxBinary(node, "elementwise_sub", x, mean);
  const std::string square = node.Op("square").In("X", centred).Made();
  const std::string variance = OnnxReduce(node, "reduce_mean", square, axes);
  const std::string inverse =
      node.Op("rsqrt").In("X", OnnxScale(node, variance, 1, epsilon)).Made();
  return OnnxBinary(node, "elementwise_mul", centred, inverse);
}

// A value per channel in dims that go with [N, C, ...].
std::string PerChannel(OnnxNode& node, const std::string& value, int rank) {
  if (node.failed()) return "";
  Dims dims(rank - 1, Dim(1));
  dims[0] = node.TypeOf(value).Elements();
  return node.Reshaped(value, dims);
}

// With statistics of which the graph computes one at least: as a test has it.
// The other is no weight for that.
void FedBatchNorm(OnnxNode& node, double epsilon) {
  const std::string x = node.In(0);
  for (const int i : {3, 4}) {
    if (node.IsInitializer(i)) node.graph().Freeze(node.In(i));
  }
  if (node.failed()) return;
  const int rank = node.TypeOf(x).rank();
  std::string per[4];
  for (int i = 0; i < 4; ++i) per[i] = PerChannel(node, node.In(i + 1), rank);
  const std::string inverse =
      node.Op("rsqrt").In("X", OnnxScale(node, per[3], 1, epsilon)).Made();
  const std::string factor =
      OnnxBinary(node, "elementwise_mul", inverse, per[0]);
  const std::string centred = OnnxBinary(node, "elementwise_sub", x, per[2]);
  const std::string scaled =
      OnnxBinary(node, "elementwise_mul", centred, factor);
  node.Op("elementwise_add").In("X", scaled).In("Y", per[1]).Out();
}

// A value per channel or place as ours takes it, [n].
std::string AsList(OnnxNode& node, int input, const Dim& count) {
  const std::string value = node.In(input);
  if (node.failed()) return "";
  if (node.TypeOf(value).Elements() != count) {
    node.Refuse(absl::StrCat("input ", input), " of other dims");
    return "";
  }
  return node.Reshaped(value, {count});
}

// An input that is constant and changes nothing; ours may lack it.
bool ChangesNothing(OnnxNode& node, int input, double neutral) {
  return node.Folds(input) && node.Known(input)->Uniform() == neutral;
}

void InstanceNorm(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  if (dims.size() < 3) return node.Refuse("expected [N, C, ...]");
  OnnxOp op = node.Op("instance_norm");
  op.In("X", x);
  if (!ChangesNothing(node, 1, 1)) op.In("Scale", AsList(node, 1, dims[1]));
  if (!ChangesNothing(node, 2, 0)) op.In("Bias", AsList(node, 2, dims[1]));
  op.Attr("epsilon", node.Float("epsilon", 1e-5)).Out("Y");
}

void BatchNorm(OnnxNode& node, const Rule&) {
  const double epsilon = node.Float("epsilon", 1e-5);
  const double momentum = node.Float("momentum", 0.9);
  // Training or not: our compiler makes both.
  const bool trains = node.Int("training_mode", 0) != 0;
  if (node.Int("spatial", 1) != 1) {
    return node.Refuse("attribute spatial", " = 0 is not taken");
  }
  for (int i = 1; i < node.outputs(); ++i) node.ExpectUnread(i);
  const std::string x = node.In(0);
  if (node.failed()) return;
  if (node.TypeOf(x).rank() < 2) return node.Refuse("expected [N, C, ...]");
  // Scale and bias may be anybody's: without affine parameters they are
  // constants, and weights that are normalised are computed.
  const bool has_mean = node.IsInitializer(3);
  const bool kept = node.IsInitializer(4) && has_mean;
  if (!kept && trains) {
    // Of one sample its own statistics, whatever ran; weights are normalised
    // so.
    const Dims dims = node.TypeOf(x).dims;
    if (dims[0] == Dim(1) && dims.size() > 2) return InstanceNorm(node, {});
    return node.Refuse("running statistics", " that are no initialisers");
  }
  if (!kept) return FedBatchNorm(node, epsilon);
  const std::string mean = node.In(3), variance = node.In(4);
  if (node.failed()) return;
  node.graph().SetStatistic(mean, 0);
  node.graph().SetStatistic(variance, 1);
  node.Op("batch_norm")
      .In("X", x)
      .In("Scale", node.In(1))
      .In("Bias", node.In(2))
      .In("Mean", mean)
      .In("Variance", variance)
      .Attr("epsilon", epsilon)
      .Attr("momentum", momentum)
      .Out("Y");
}

// A number per channel, [C]: before opset 21 the file has one per group.
std::string PerChannelOfGroups(OnnxNode& node, int input, const Dim& channels,
                               int64_t groups) {
  if (node.opset() >= 21) return AsList(node, input, channels);
  const int64_t count = channels.coefficient();
  const std::string list = AsList(node, input, Dim(groups));
  if (node.failed() || count == groups) return list;
  const std::string wide =
      node.Op("expand_v2")
          .In("X", node.Reshaped(list, {Dim(groups), Dim(1)}))
          .Attr("shape", IntList{groups, count / groups})
          .Made();
  return node.Reshaped(wide, {channels});
}

void GroupNorm(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  node.Int("stash_type", 1);  // statistics are f32
  const int64_t groups = node.Int("num_groups", 1);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  if (dims.size() < 3) return node.Refuse("expected [N, C, ...]");
  if (groups < 1 || !dims[1].is_constant() ||
      dims[1].coefficient() % groups != 0) {
    return node.Refuse("attribute num_groups", " does not divide the channels");
  }
  OnnxOp op = node.Op("group_norm");
  op.In("X", x);
  if (!ChangesNothing(node, 1, 1)) {
    op.In("Scale", PerChannelOfGroups(node, 1, dims[1], groups));
  }
  if (!ChangesNothing(node, 2, 0)) {
    op.In("Bias", PerChannelOfGroups(node, 2, dims[1], groups));
  }
  op.Attr("epsilon", node.Float("epsilon", 1e-5))
      .Attr("groups", groups)
      .Out("Y");
}

void LayerNorm(OnnxNode& node, const Rule&) {
  const double epsilon = node.Float("epsilon", 1e-5);
  node.Int("stash_type", 1);  // statistics are f32
  const std::string x = node.In(0);
  if (node.failed()) return;
  const Dims dims = node.TypeOf(x).dims;
  const int rank = static_cast<int>(dims.size());
  const int64_t first = node.Axis(node.Int("axis", -1), rank);
  if (node.failed()) return;
  Dim count(1);
  Dims kept = dims;
  for (int i = static_cast<int>(first); i < rank; ++i) {
    count = count * dims[i];
    kept[i] = Dim(1);
  }
  std::string wide = x;
  // Ours has samples before what is normalised.
  if (first == 0) {
    Dims with = {Dim(1)};
    with.insert(with.end(), dims.begin(), dims.end());
    wide = node.Reshaped(x, with);
  }
  OnnxOp op = node.Op("layer_norm");
  op.In("X", wide).In("Scale", AsList(node, 1, count));
  if (node.Has(2)) op.In("Bias", AsList(node, 2, count));
  op.Attr("epsilon", epsilon)
      .Attr("begin_norm_axis", std::max<int64_t>(first, 1));
  if (!node.IsRead(1) && !node.IsRead(2)) {
    const std::string made = op.Made("Y");
    return node.Same(0, node.Reshaped(made, dims));
  }
  const std::vector<std::string> made = op.MadeAll({"Y", "Mean", "Variance"});
  if (node.failed()) return;
  node.Same(0, node.Reshaped(made[0], dims));
  node.Same(1, node.Reshaped(made[1], kept));
  const std::string inverse =
      node.Op("rsqrt").In("X", OnnxScale(node, made[2], 1, epsilon)).Made();
  node.Same(2, node.Reshaped(inverse, kept));
}

void MeanVariance(OnnxNode& node, const Rule&) {
  const IntList axes = node.Ints("axes", {0, 2, 3});
  node.Same(0, Normalized(node, node.In(0), axes, 1e-18));
}

}  // namespace

const std::vector<OnnxRule>& OnnxNormRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"BatchNormalization", BatchNorm},
      {"GroupNormalization", GroupNorm},
      {"InstanceNormalization", InstanceNorm},
      {"LayerNormalization", LayerNorm},
      {"MeanVarianceNormalization", MeanVariance},
  };
  return rules;
}

}  // namespace halftone

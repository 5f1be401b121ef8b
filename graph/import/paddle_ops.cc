#include "graph/import/paddle_ops.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "graph/import/functions.h"
#include "graph/import/paddle_attrs.h"
#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"
#include "graph/import/paddle_sizes.h"
#include "graph/io/model_values.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

using paddle::OpDesc;
using paddle::VarType;

void BatchNorm(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Dropout(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void FlashAttention(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Gelu(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Refuse(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void RefuseDims(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Select(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);

// Paddle's ops that are not ours by name, slots and attributes.
const std::vector<Rule>& Rules() {
  static const auto& rules = *new std::vector<Rule>{
      {"abs", OfOneNumber},
      {"accuracy", CountCorrect},
      {"addmm", AddedProduct},
      {"affine_grid", AffinePlaces},
      {"argsort", Sorted},
      {"assert", Nothing},
      {"assign_value", AssignValue},
      {"batch_norm", BatchNorm},
      {"bicubic_interp_v2", ByName, {{"interp_method", ""}}},
      {"bilinear_interp_v2", ByName, {{"interp_method", ""}}},
      {"bilinear_tensor_product", BilinearProduct},
      {"bitwise_and", OfBits},
      {"bitwise_not", OfBits},
      {"bitwise_or", OfBits},
      {"bitwise_xor", OfBits},
      {"bmm", BatchProduct},
      {"cast", ByName, {{"out_dtype", "to"}, {"in_dtype", ""}}},
      {"channel_shuffle", ChannelShuffle},
      {"conditional_block",
       Refuse,
       {},
       "its block is not there, or in use elsewhere"},
      {"conv2d", Windowed},
      {"conv2d_transpose", Windowed},
      {"conv3d", Windowed},
      {"conv3d_transpose", Windowed},
      {"crop_tensor", Cropped},
      {"depthwise_conv2d", Windowed},
      {"depthwise_conv2d_transpose", Windowed},
      {"diag_embed", OnADiagonal},
      {"diagonal", Diagonal},
      {"dist", Distance},
      {"dot", DotProduct},
      {"dropout", Dropout, {{"dropout_implementation", ""}}},
      {"einsum", EinsumOf},
      {"elementwise_add", Arithmetic},
      {"elementwise_floordiv", DivideDown},
      {"elementwise_fmax", ExtremeNumber},
      {"elementwise_fmin", ExtremeNumber},
      {"elementwise_max", Arithmetic},
      {"elementwise_min", Arithmetic},
      {"elementwise_mod", DivideDown},
      {"elementwise_mul", Arithmetic},
      {"elementwise_sub", Arithmetic},
      {"expand_as_v2", ExpandAs},
      {"expand_v2", Expanded},
      {"eye", Identity},
      {"fill_any_like", FillLike},
      {"fill_constant", Filled},
      {"fill_constant_batch_size_like", FilledAsBatch},
      {"flash_attn",
       FlashAttention,
       {{"dropout", "dropout_prob"},
        {"is_test", ""},
        {"return_softmax", ""},
        {"rng_name", ""}}},
      {"fold", Folded},
      {"frobenius_norm", FrobeniusNorm},
      {"fused_softmax_mask", MaskedSoftmax},
      {"fused_softmax_mask_upper_triangle", MaskedSoftmax},
      {"gather_nd", GatherByRows},
      {"gelu", Gelu, {{"approximate", ""}}},
      {"increment", Increment},
      {"index_add", AddedSlices},
      {"index_put", PutByIndex},
      {"index_sample", SampledByIndex},
      {"isfinite_v2", FiniteOrNot},
      {"isinf_v2", FiniteOrNot},
      {"isnan_v2", FiniteOrNot},
      {"kron", Kronecker},
      {"lerp", Interpolate},
      {"linear_interp_v2", ByName, {{"interp_method", ""}}},
      {"linspace", EvenlySpaced},
      {"logsumexp", LogSumExp},
      {"masked_select", RefuseDims},
      {"matmul",
       Product,
       {{"transpose_X", "trans_x"}, {"transpose_Y", "trans_y"}}},
      {"matmul_v2", Product},
      {"maxout", GreatestOfChannels},
      {"meshgrid", MeshGrid},
      {"multiplex", Multiplex},
      {"mv", MatrixTimesVector},
      {"nearest_interp_v2", ByName, {{"interp_method", ""}}},
      {"nll_loss", NegativeLogLikelihood},
      {"norm", Normalized},
      {"pixel_unshuffle", ByName, {{"downscale_factor", "upscale_factor"}}},
      {"pool2d", Pooled},
      {"pool3d", Pooled},
      {"range", Range},
      {"recurrent", Refuse, {}, "its body is a block of its own"},
      {"reduce_all", ReduceLogical},
      {"reduce_amax", ExtremeOfTies},
      {"reduce_amin", ExtremeOfTies},
      {"reduce_any", ReduceLogical},
      {"reduce_sum", Summed},
      {"repeat_interleave", Repeated},
      {"reshape2", Reshaped},
      {"rnn", Recurrent},
      {"roll", Roll},
      {"scale", Scaled},
      {"scatter_nd_add", AddedByRows},
      {"select_input", Select},
      {"sequence_mask", SequenceMask},
      {"set_value", SlicesSet},
      {"sign", OfOneNumber},
      {"size", CountElements},
      {"slice", SlicedBySizes},
      {"softmax_with_cross_entropy", CrossEntropy},
      {"strided_slice", SlicedBySizes},
      {"temporal_shift", ShiftedFrames},
      {"tile", TiledBySizes},
      {"top_k_v2", Sorted, {{"axis", ""}, {"largest", ""}, {"sorted", ""}}},
      {"trace", Diagonal},
      {"tril_triu", TrilTriu},
      {"trilinear_interp_v2", ByName, {{"interp_method", ""}}},
      {"unbind", Unbound},
      {"unfold", Unfolded},
      {"unique", RefuseDims},
      {"unique_consecutive", RefuseDims},
      {"where_index", RefuseDims},
      {"while", Refuse, {}, "its body is a block of its own"},
  };
  return rules;
}

// What comes nearest to an op that has no counterpart, where spelling does not
// say it.
struct Near {
  absl::string_view paddle, ours;
};
constexpr Near kNear[] = {
    {"c_softmax_with_cross_entropy", "softmax_with_cross_entropy"},
    {"conv2d_fusion", "conv2d"},
    {"cross_entropy", "softmax_with_cross_entropy"},
    {"cross_entropy2", "softmax_with_cross_entropy"},
    {"fc", "mul"},
    {"flash_attn_unpadded", "scaled_dot_product_attention"},
    {"fused_attention", "scaled_dot_product_attention"},
    {"fused_batch_norm_act", "batch_norm"},
    {"fused_bn_add_activation", "batch_norm"},
    {"fused_feedforward", "matmul"},
    {"fused_gemm_epilogue", "matmul"},
    {"hsigmoid_loss", "softmax_with_cross_entropy"},
    {"inplace_abn", "batch_norm"},
    {"lookup_table", "lookup_table_v2"},
};

std::string Nearest(const std::string& type) {
  for (const Near& near : kNear) {
    if (near.paddle == type) return absl::StrCat("; nearest: ", near.ours);
  }
  std::vector<std::string> names;
  for (const OpSchema* schema : Ops().All()) {
    if (!schema->internal()) names.push_back(schema->name());
  }
  for (const auto& alias : Ops().Aliases()) names.push_back(alias.first);
  return NearestHint(type, names);
}

// ---- By name.

void AddInputs(const OpDesc& op, const OpSchema& schema, PaddleScope& scope,
               proto::OpNode* node, ImportedOp* result) {
  for (const OpDesc::Var& in : op.inputs()) {
    if (in.arguments_size() == 0) continue;
    if (schema.FindInput(in.parameter()) < 0) {
      result->refusals.push_back(
          {absl::StrCat("input ", in.parameter()), " is not taken"});
      continue;
    }
    proto::SlotVars& slot = *node->add_in();
    slot.set_slot(in.parameter());
    for (const std::string& name : in.arguments()) {
      slot.add_var(scope.Read(name));
    }
  }
}

// Ours, in the schema's order: the first, whose value gives the op its name,
// and those that are read.
void AddOutputs(const OpDesc& op, const OpSchema& schema, PaddleScope& scope,
                proto::OpNode* node, ImportedOp* result) {
  const auto is_read = [&](const std::string& name) {
    return scope.IsRead(name);
  };
  for (const Slot& slot : schema.outputs()) {
    const auto& names = OutputsOf(op, slot.name);
    if (names.empty()) continue;
    if (node->out_size() > 0 &&
        std::none_of(names.begin(), names.end(), is_read)) {
      continue;
    }
    proto::SlotVars& out = *node->add_out();
    out.set_slot(slot.name);
    for (const std::string& name : names) out.add_var(scope.Write(name));
  }
  absl::flat_hash_set<absl::string_view> inputs;
  for (const OpDesc::Var& in : op.inputs()) {
    inputs.insert(in.arguments().begin(), in.arguments().end());
  }
  for (const OpDesc::Var& out : op.outputs()) {
    if (schema.FindOutput(out.parameter()) >= 0) continue;
    for (const std::string& name : out.arguments()) {
      // MeanOut is Mean: our step updates statistics itself.
      if (!scope.IsRead(name) || inputs.contains(name)) continue;
      result->refusals.push_back({absl::StrCat("output ", out.parameter()),
                                  " is read, which ours does not have"});
    }
  }
}

void AddAttrs(const OpDesc& op, const OpSchema& schema, const Rule& rule,
              proto::OpNode* node, ImportedOp* result) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    absl::string_view name = attr.name();
    for (const Rename& rename : rule.attrs) {
      if (rename.paddle == attr.name()) name = rename.ours;
    }
    if (name.empty()) continue;
    if (schema.FindAttr(AttrName(schema, name)) < 0) {
      if (ChangesNothing(attr)) continue;
      result->refusals.push_back(
          {absl::StrCat("attribute ", attr.name()),
           absl::StrCat(" = ", TextOf(attr), " is not taken")});
      continue;
    }
    const std::optional<AttrValue> value = ValueOf(attr);
    const std::string wrong = value.has_value()
                                  ? SetAttrOf(schema, name, *value, node)
                                  : absl::StrCat(" is ", TextOf(attr));
    if (wrong.empty()) continue;
    result->refusals.push_back({absl::StrCat("attribute ", name), wrong});
  }
}

// ---- Those that differ.

void Refuse(const OpDesc&, const Rule& rule, PaddleScope&, ImportedOp* result) {
  result->refusals.push_back({absl::StrCat("control flow: ", rule.why)});
}

void RefuseDims(const OpDesc&, const Rule&, PaddleScope&, ImportedOp* result) {
  result->refusals.push_back(
      {"how many elements it makes is the data's to say, where ours have dims "
       "that are known; nearest: where"});
}

// Layers that are saved in a test's form say that they use what was counted
// before, as is_test does; training, which our compiler makes, too, counts.
void BatchNorm(const OpDesc& op, const Rule& rule, PaddleScope& scope,
               ImportedOp* result) {
  Rule norm = rule;
  if (BoolAttr(op, "is_test", false)) {
    norm.attrs.push_back({"use_global_stats", ""});
  }
  ByName(op, norm, scope, result);
}

// downgrade_in_infer leaves out the division by 1 - p in training and
// multiplies by it in a test: in both, 1 - p times what upscale_in_train makes.
void Dropout(const OpDesc& op, const Rule& rule, PaddleScope& scope,
             ImportedOp* result) {
  ByName(op, rule, scope, result);
  const std::string how =
      StringAttr(op, "dropout_implementation", "downgrade_in_infer");
  if (how == "upscale_in_train" || result->nodes.empty() ||
      result->nodes[0].out_size() == 0) {
    return;
  }
  std::string* const dropped = result->nodes[0].mutable_out(0)->mutable_var(0);
  proto::OpNode node;
  node.set_type("scale");
  proto::SlotVars& out = *node.add_out();
  out.set_slot("Out");
  out.add_var(*dropped);
  *dropped = scope.Unused(absl::StrCat(*dropped, ".upscaled"));
  proto::SlotVars& in = *node.add_in();
  in.set_slot("X");
  in.add_var(*dropped);
  result->nodes.push_back(std::move(node));
  const double p = FloatAttr(op, "dropout_prob", 0.5);
  SetLast("scale", Shortest(static_cast<float>(1 - p)), result);
}

// Its seed says nothing to us: we draw other masks.
void FlashAttention(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                    ImportedOp* result) {
  constexpr std::pair<const char*, const char*> kSlots[] = {
      {"q", "Q"}, {"k", "K"}, {"v", "V"}, {"attn_mask", "Mask"}};
  OpDesc attention = op;
  attention.set_type("scaled_dot_product_attention");
  attention.clear_inputs();
  for (const auto& [paddle, ours] : kSlots) {
    for (const std::string& name : InputsOf(op, paddle)) {
      OpDesc::Var& in = *attention.add_inputs();
      in.set_parameter(ours);
      in.add_arguments(name);
    }
  }
  for (OpDesc::Var& out : *attention.mutable_outputs()) {
    if (out.parameter() == "out") out.set_parameter("Out");
  }
  ByName(attention, rule, scope, result);
  if (BoolAttr(op, "is_test", false)) SetLast("dropout_prob", 0.0, result);
}

void Gelu(const OpDesc& op, const Rule& rule, PaddleScope& scope,
          ImportedOp* result) {
  ByName(op, rule, scope, result);
  if (BoolAttr(op, "approximate", false)) {
    SetLast("approximate", std::string("tanh"), result);
  }
}

// The second of two branches' values where the condition, of which the mask is
// a cast, holds.
void Select(const OpDesc& op, const Rule&, PaddleScope& scope,
            ImportedOp* result) {
  const auto& branches = InputsOf(op, "X");
  const auto& mask = InputsOf(op, "Mask");
  const auto& out = OutputsOf(op, "Out");
  const OpDesc* const cast = mask.empty() ? nullptr : scope.Writer(mask[0]);
  if (branches.size() != 2 || out.empty() || cast == nullptr ||
      cast->type() != "cast" || InputsOf(*cast, "X").empty()) {
    result->refusals.push_back(
        {"expected two branches and a condition that is cast"});
    return;
  }
  OpDesc where;
  where.set_type("where");
  const auto add = [&where](const char* slot, const std::string& name) {
    OpDesc::Var& in = *where.add_inputs();
    in.set_parameter(slot);
    in.add_arguments(name);
  };
  add("Condition", InputsOf(*cast, "X")[0]);
  add("X", branches[1]);
  add("Y", branches[0]);
  where.add_outputs()->set_parameter("Out");
  where.mutable_outputs(0)->add_arguments(out[0]);
  ByName(where, Rule{""}, scope, result);
}

}  // namespace

void ByName(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  const OpSchema* const schema = Ops().Find(op.type());
  if (schema == nullptr || schema->internal()) {
    result->refusals.push_back({"no such op", Nearest(op.type())});
    return;
  }
  proto::OpNode node;
  node.set_type(op.type());
  AddInputs(op, *schema, scope, &node, result);
  AddOutputs(op, *schema, scope, &node, result);
  AddAttrs(op, *schema, rule, &node, result);
  if (node.out_size() == 0) result->refusals.push_back({"it has no output"});
  result->nodes.push_back(std::move(node));
}

// Sets an attribute of the op that has been added last.
void SetLast(absl::string_view name, AttrValue value, ImportedOp* result) {
  if (result->nodes.empty()) return;
  proto::OpNode& node = result->nodes.back();
  const std::string wrong =
      SetAttrOf(*Ops().Find(node.type()), name, std::move(value), &node);
  if (wrong.empty()) return;
  result->refusals.push_back({absl::StrCat("attribute ", name), wrong});
}

ImportedOp ImportOp(const OpDesc& op, PaddleScope& scope) {
  static const Rule& any = *new Rule{""};
  static const Rule& function = *new Rule{"", Function};
  const Rule* rule =
      FindPaddleFunction(op.type()) == nullptr ? &any : &function;
  for (const Rule& one : Rules()) {
    if (one.type == op.type()) rule = &one;
  }
  ImportedOp result;
  const bool last = HasChannelsLast(op);
  (last ? ImportChannelsLast : rule->convert)(op, *rule, scope, &result);
  return result;
}

}  // namespace halftone

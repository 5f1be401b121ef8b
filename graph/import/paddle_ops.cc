#include "graph/import/paddle_ops.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "graph/import/paddle_attrs.h"
#include "graph/io/model_values.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

using paddle::OpDesc;

struct Rename {
  absl::string_view paddle, ours;  // ours empty: it says nothing to us
};

struct Rule;
using Convert = void (*)(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                         ImportedOp* result);

void ByName(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);
void Pooled(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void CountCorrect(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void CrossEntropy(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Dropout(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Gelu(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Range(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Refuse(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Select(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);
void Windowed(const OpDesc&, const Rule&, PaddleScope&, ImportedOp*);

struct Rule {
  absl::string_view type;  // Paddle's
  Convert convert = ByName;
  std::vector<Rename> attrs = {};
  absl::string_view why = "";  // of a refusal
};

// Paddle's ops that are not ours by name, slots and attributes.
const std::vector<Rule>& Rules() {
  static const auto& rules = *new std::vector<Rule>{
      {"accuracy", CountCorrect},
      {"cast", ByName, {{"out_dtype", "to"}, {"in_dtype", ""}}},
      {"conditional_block",
       Refuse,
       {},
       "its block is not there, or in use elsewhere"},
      {"conv2d", Windowed},
      {"conv2d_transpose", Windowed},
      {"conv3d", Windowed},
      {"conv3d_transpose", Windowed},
      {"depthwise_conv2d", Windowed},
      {"depthwise_conv2d_transpose", Windowed},
      {"dropout", Dropout, {{"dropout_implementation", ""}}},
      {"gelu", Gelu, {{"approximate", ""}}},
      {"matmul",
       ByName,
       {{"transpose_X", "trans_x"}, {"transpose_Y", "trans_y"}}},
      {"pool2d", Pooled},
      {"pool3d", Pooled},
      {"range", Range},
      {"recurrent", Refuse, {}, "its body is a block of its own"},
      {"select_input", Select},
      {"softmax_with_cross_entropy", CrossEntropy},
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
    {"fused_attention", "matmul"},
    {"fused_batch_norm_act", "batch_norm"},
    {"fused_bn_add_activation", "batch_norm"},
    {"fused_feedforward", "matmul"},
    {"fused_gemm_epilogue", "matmul"},
    {"group_norm", "batch_norm"},
    {"hsigmoid_loss", "softmax_with_cross_entropy"},
    {"instance_norm", "batch_norm"},
    {"inplace_abn", "batch_norm"},
    {"layer_norm", "batch_norm"},
    {"lookup_table", "lookup_table_v2"},
    {"max_pool2d_with_index", "pool2d"},
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

// ---- Those that differ.

void Refuse(const OpDesc&, const Rule& rule, PaddleScope&, ImportedOp* result) {
  result->refusals.push_back({absl::StrCat("control flow: ", rule.why)});
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

void Gelu(const OpDesc& op, const Rule& rule, PaddleScope& scope,
          ImportedOp* result) {
  ByName(op, rule, scope, result);
  if (BoolAttr(op, "approximate", false)) {
    SetLast("approximate", std::string("tanh"), result);
  }
}

// Its bounds are values in Paddle: constants, or the op is refused.
void Range(const OpDesc& op, const Rule&, PaddleScope& scope,
           ImportedOp* result) {
  const auto& out = OutputsOf(op, "Out");
  proto::OpNode node;
  node.set_type("arange");
  proto::SlotVars& slot = *node.add_out();
  slot.set_slot("Out");
  if (!out.empty()) slot.add_var(scope.Write(out[0]));
  result->nodes.push_back(std::move(node));
  constexpr std::pair<const char*, const char*> kBounds[] = {
      {"Start", "start"}, {"End", "end"}, {"Step", "step"}};
  for (const auto& [name, attr] : kBounds) {
    const auto& bound = InputsOf(op, name);
    const OpDesc* const fill = bound.empty() ? nullptr : scope.Writer(bound[0]);
    if (out.empty() || fill == nullptr || fill->type() != "fill_constant") {
      result->refusals.push_back(
          {absl::StrCat("input ", name), ": expected a constant"});
      continue;
    }
    SetLast(attr, ConstantOf(*fill), result);
    if (attr == absl::string_view("start")) {
      SetLast("dtype", IntAttr(*fill, "dtype", 3), result);
    }
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

// Softmax, if it is read, is an op of its own.
void CrossEntropy(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                  ImportedOp* result) {
  OpDesc loss = op;
  const auto& softmax = OutputsOf(op, "Softmax");
  if (!softmax.empty() && scope.IsRead(softmax[0])) {
    OpDesc probabilities;
    probabilities.set_type("softmax");
    probabilities.add_inputs()->set_parameter("X");
    *probabilities.mutable_inputs(0)->mutable_arguments() =
        InputsOf(op, "Logits");
    probabilities.add_outputs()->set_parameter("Out");
    probabilities.mutable_outputs(0)->add_arguments(softmax[0]);
    if (const OpDesc::Attr* const axis = FindAttr(op, "axis")) {
      *probabilities.add_attrs() = *axis;
    }
    ByName(probabilities, rule, scope, result);
    for (OpDesc::Var& out : *loss.mutable_outputs()) {
      if (out.parameter() == "Softmax") out.clear_arguments();
    }
  }
  ByName(loss, rule, scope, result);
}

// The share of samples whose label is among the best k, from top_k and
// accuracy: a count and a metric.
void CountCorrect(const OpDesc& op, const Rule&, PaddleScope& scope,
                  ImportedOp* result) {
  const auto& best = InputsOf(op, "Indices");
  const auto& label = InputsOf(op, "Label");
  const auto& out = OutputsOf(op, "Accuracy");
  const OpDesc* const top = best.empty() ? nullptr : scope.Writer(best[0]);
  if (top == nullptr || label.empty() || out.empty() ||
      (top->type() != "top_k_v2" && top->type() != "top_k") ||
      InputsOf(*top, "X").empty() || !InputsOf(*top, "K").empty()) {
    result->refusals.push_back({"expected the indices that a top_k_v2 finds"});
    return;
  }
  const int64_t k = IntAttr(*top, "k", 1);
  proto::OpNode node;
  node.set_type("correct_count");
  proto::SlotVars& x = *node.add_in();
  x.set_slot("X");
  x.add_var(scope.Read(InputsOf(*top, "X")[0]));
  proto::SlotVars& labels = *node.add_in();
  labels.set_slot("Label");
  labels.add_var(scope.Read(label[0]));
  proto::SlotVars& count = *node.add_out();
  count.set_slot("Out");
  count.add_var(scope.Unused(absl::StrCat(out[0], ".count")));
  result->nodes.push_back(std::move(node));
  SetLast("k", k, result);
  proto::Metric metric;
  metric.set_name(absl::StrCat("top", k));
  metric.set_var(result->nodes.back().out(0).var(0));
  metric.set_over(scope.Read(label[0]));
  result->metrics.push_back(std::move(metric));
  for (const OpDesc::Var& values : op.outputs()) {
    for (const std::string& name : values.arguments()) {
      result->taken.push_back(name);
    }
  }
}

// ---- Windows.

void SetInts(absl::string_view name, const std::vector<int64_t>& values,
             OpDesc* op) {
  OpDesc::Attr* attr = nullptr;
  for (OpDesc::Attr& one : *op->mutable_attrs()) {
    if (one.name() == name) attr = &one;
  }
  if (attr == nullptr) attr = op->add_attrs();
  attr->Clear();
  attr->set_name(std::string(name));
  attr->set_type(OpDesc::LONGS);
  for (const int64_t value : values) attr->add_longs(value);
}

std::vector<int64_t> Ints(const OpDesc& op, absl::string_view name) {
  const OpDesc::Attr* const attr = FindAttr(op, name);
  if (attr == nullptr) return {};
  const std::optional<AttrValue> value = ValueOf(*attr);
  const auto* ints =
      value.has_value() ? std::get_if<std::vector<int64_t>>(&*value) : nullptr;
  return ints == nullptr ? std::vector<int64_t>() : *ints;
}

// The last `count` dims of a variable, all known; empty: they are not.
std::vector<int64_t> Sizes(const std::string& name, size_t count,
                           PaddleScope& scope) {
  const paddle::VarDesc* const var = scope.Variable(name);
  if (var == nullptr) return {};
  const auto& dims = var->type().lod_tensor().tensor().dims();
  if (dims.size() < static_cast<int>(count)) return {};
  std::vector<int64_t> sizes(dims.end() - count, dims.end());
  const auto unknown = [](int64_t size) { return size < 1 || size > 1 << 24; };
  if (std::any_of(sizes.begin(), sizes.end(), unknown)) return {};
  return sizes;
}

// Paddings in numbers for SAME (an output for each stride, the rest of the
// padding behind) and VALID (none). Returns what is wrong.
std::string ExplicitPaddings(const std::string& input,
                             const std::vector<int64_t>& window,
                             PaddleScope& scope, OpDesc* op) {
  const std::string how = StringAttr(*op, "padding_algorithm", "EXPLICIT");
  if (how == "EXPLICIT") return "";
  std::vector<int64_t> paddings(2 * window.size(), 0);
  if (how == "SAME") {
    const std::vector<int64_t> sizes = Sizes(input, window.size(), scope);
    const std::vector<int64_t> strides = Ints(*op, "strides");
    if (window.empty() || sizes.size() != window.size() ||
        strides.size() != window.size()) {
      return "padding_algorithm SAME needs constant sizes";
    }
    for (size_t i = 0; i < window.size(); ++i) {
      if (strides[i] < 1) return "expected strides of 1 or more";
      const int64_t outputs = (sizes[i] + strides[i] - 1) / strides[i];
      const int64_t sum = std::max<int64_t>(
          0, (outputs - 1) * strides[i] + window[i] - sizes[i]);
      paddings[2 * i] = sum / 2;
      paddings[2 * i + 1] = sum - sum / 2;
    }
    // Paddle's SAME knows no dilation.
    if (FindAttr(*op, "dilations") != nullptr) {
      SetInts("dilations", std::vector<int64_t>(window.size(), 1), op);
    }
  } else if (how != "VALID") {
    return absl::StrCat("padding_algorithm ", how, " is not known");
  }
  SetInts("paddings", paddings, op);
  for (OpDesc::Attr& attr : *op->mutable_attrs()) {
    if (attr.name() == "padding_algorithm") attr.set_s("EXPLICIT");
  }
  return "";
}

// Whether the spatial sizes come last.
bool ChannelsFirst(const OpDesc& op) {
  const std::string layout = StringAttr(op, "data_format", "NCHW");
  return layout != "NHWC" && layout != "NDHWC";
}

void Windowed(const OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result) {
  OpDesc copy = op;
  const auto& input = InputsOf(op, "Input");
  const auto& filter = InputsOf(op, "Filter");
  if (!input.empty() && !filter.empty() && ChannelsFirst(op)) {
    const size_t rank = Ints(op, "strides").size();
    const std::string wrong =
        ExplicitPaddings(input[0], Sizes(filter[0], rank, scope), scope, &copy);
    if (!wrong.empty()) result->refusals.push_back({wrong});
  }
  ByName(copy, rule, scope, result);
}

void Pooled(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  OpDesc copy = op;
  const auto& input = InputsOf(op, "X");
  if (!input.empty() && ChannelsFirst(op)) {
    const std::string wrong =
        ExplicitPaddings(input[0], Ints(op, "ksize"), scope, &copy);
    if (!wrong.empty()) result->refusals.push_back({wrong});
  }
  ByName(copy, rule, scope, result);
  // Paddle counts windows that begin in the padding.
  if (!result->nodes.empty() && BoolAttr(op, "ceil_mode", false)) {
    SetLast("ceil_windows", std::string("all"), result);
  }
}

}  // namespace

ImportedOp ImportOp(const OpDesc& op, PaddleScope& scope) {
  static const Rule& any = *new Rule{""};
  const Rule* rule = &any;
  for (const Rule& one : Rules()) {
    if (one.type == op.type()) rule = &one;
  }
  ImportedOp result;
  rule->convert(op, *rule, scope, &result);
  return result;
}

}  // namespace halftone

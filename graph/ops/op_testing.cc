#include "graph/ops/op_testing.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/grad_context.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {
namespace {

std::string AttrText(const AttrValue& value) {
  struct Print {
    std::string operator()(bool v) { return v ? "true" : "false"; }
    std::string operator()(int64_t v) { return absl::StrCat(v); }
    std::string operator()(double v) { return ExactDouble(v); }
    std::string operator()(const std::string& v) { return v; }
    std::string operator()(DType v) { return std::string(Name(v)); }
    std::string operator()(const Ints& v) {
      return absl::StrCat("[", absl::StrJoin(v, ","), "]");
    }
    std::string operator()(const Floats& v) {
      return absl::StrCat("[", absl::StrJoin(v, ","), "]");
    }
    std::string operator()(const std::vector<std::string>& v) {
      return absl::StrCat("[", absl::StrJoin(v, ","), "]");
    }
  };
  return std::visit(Print(), value);
}

// A program with one op, as a Call describes it.
class Harness {
 public:
  Harness(const Call& call, DType dtype) : call_(call), dtype_(dtype) {
    program_.Symbol("B");
    program_.Symbol("S");
    block_ = &program_.AddEntry("train").block();
  }

  absl::StatusOr<OpId> Build() {
    OpBuilder builder(block_, call_.op);
    builder.Name("op");
    for (const auto& [slot, types] : call_.in) {
      const std::vector<std::string> members =
          absl::StrSplit(types, ' ', absl::SkipEmpty());
      const OpSchema* schema = Ops().Find(call_.op);
      HT_CHECK(schema != nullptr, call_.op.c_str());
      const int s = schema->FindInput(slot);
      const bool list = s >= 0 && schema->inputs()[s].list();
      for (size_t i = 0; i < members.size(); ++i) {
        builder.In(slot,
                   block_->AddFeed(list ? absl::StrCat(slot, ".", i) : slot,
                                   Type(members[i])));
      }
    }
    for (const auto& [name, value] : call_.attrs) builder.Attr(name, value);
    for (const auto& [slot, count] : call_.lists) {
      for (int i = 0; i < count; ++i) {
        builder.Out(slot, absl::StrCat("op.", slot, ".", i));
      }
    }
    for (const auto& [var, name] : call_.bind) builder.Bind(var, Parse(name));
    return builder.Build();
  }

  std::string Outputs(const Op& op) const {
    std::vector<std::string> parts;
    for (int s = 0; s < op.outputs.slots(); ++s) {
      std::vector<std::string> types;
      for (ValueId v : op.outputs.slot(s)) types.push_back(TypeText(v));
      if (types.empty()) continue;
      parts.push_back(absl::StrCat(op.schema->outputs()[s].name, "=",
                                   absl::StrJoin(types, " ")));
    }
    return absl::StrJoin(parts, "; ");
  }

  std::string OpText(const Op& op) const {
    std::vector<std::string> inputs, attrs, outputs;
    for (int s = 0; s < op.inputs.slots(); ++s) {
      std::vector<std::string> names;
      for (ValueId v : op.inputs.slot(s)) names.emplace_back(block_->name(v));
      if (names.empty()) continue;
      inputs.push_back(absl::StrCat(op.schema->inputs()[s].name, "=",
                                    absl::StrJoin(names, " ")));
    }
    for (const auto& [index, value] : op.attrs) {
      attrs.push_back(
          absl::StrCat(op.schema->attrs()[index].name, "=", AttrText(value)));
    }
    for (ValueId v : op.outputs.all()) {
      outputs.push_back(absl::StrCat(block_->name(v), " : ", TypeText(v)));
    }
    return absl::StrCat(
        op.schema->name(), "(", absl::StrJoin(inputs, ", "), ")",
        attrs.empty() ? "" : absl::StrCat(" {", absl::StrJoin(attrs, " "), "}"),
        " -> ", absl::StrJoin(outputs, ", "), "\n");
  }

  Block& block() { return *block_; }
  std::string TypeText(ValueId v) const {
    return ToString(block_->type(v), program_.symbols());
  }

 private:
  DType Parse(const std::string& name) const {
    if (name == "T") return dtype_;
    const auto dtype = DTypeFromName(name);
    HT_CHECK(dtype.has_value(), name.c_str());
    return *dtype;
  }

  TensorType Type(const std::string& text) {
    const size_t bracket = text.find('[');
    TensorType type;
    type.dtype = Parse(text.substr(0, bracket));
    const size_t end = text.find(']');
    if (absl::StrContains(text.substr(end + 1), "@channels_last")) {
      type.layout = Layout::kChannelsLast;
    }
    type.sharded = absl::StrContains(text.substr(end + 1), "@shard");
    const std::string dims = text.substr(bracket + 1, end - bracket - 1);
    for (absl::string_view d : absl::StrSplit(dims, ',', absl::SkipEmpty())) {
      Dim dim(1);
      for (absl::string_view factor : absl::StrSplit(d, '*')) {
        int64_t number = 0;
        dim = dim * (absl::SimpleAtoi(factor, &number)
                         ? Dim(number)
                         : Dim::Symbol(program_.Symbol(factor)));
      }
      type.dims.push_back(dim);
    }
    return type;
  }

  const Call& call_;
  const DType dtype_;
  Program program_;
  Block* block_;
};

// Which inputs get a gradient.
GradContext::Wanted Wanted(const Call& call, const Block& block, const Op& op) {
  GradContext::Wanted wanted;
  for (int s = 0; s < op.inputs.slots(); ++s) {
    const Slot& slot = op.schema->inputs()[s];
    const bool named = std::find(call.wanted.begin(), call.wanted.end(),
                                 slot.name) != call.wanted.end();
    for (ValueId v : op.inputs.slot(s)) {
      wanted.push_back(call.wanted.empty()
                           ? IsFloat(block.dtype(v)) && !slot.shape_only()
                           : named);
    }
  }
  return wanted;
}

// The gradients of an op's inputs: their types checked, as text.
std::string GradientText(const Harness& harness, const Block& block,
                         const Op& op, const GradContext& context) {
  std::string text;
  for (size_t i = 0; i < context.in_grads().size(); ++i) {
    const ValueId gradient = context.in_grads()[i];
    if (!gradient.valid()) continue;
    const ValueId input = op.inputs.all()[i];
    EXPECT_EQ(harness.TypeText(gradient), harness.TypeText(input))
        << block.name(gradient);
    absl::StrAppend(&text, block.name(input), " <- ", block.name(gradient),
                    "\n");
  }
  return text;
}

}  // namespace

std::string Infer(const Call& call) {
  Harness harness(call, DType::kF32);
  const absl::StatusOr<OpId> op = harness.Build();
  if (!op.ok()) {
    EXPECT_EQ(ExitCodeOf(op.status()), ExitCode::kModel) << op.status();
    return std::string(op.status().message());
  }
  const absl::Status check =
      CheckTypes(harness.block(), harness.block().op(*op));
  EXPECT_TRUE(check.ok()) << check;
  return harness.Outputs(harness.block().op(*op));
}

std::string Gradient(const Call& call, DType dtype) {
  Harness harness(call, dtype);
  const absl::StatusOr<OpId> built = harness.Build();
  if (!built.ok()) return absl::StrCat("forward: ", built.status().message());
  Block& block = harness.block();
  const Op& op = block.op(*built);
  GradContext::Gradients out_grads(op.outputs.all().size());
  out_grads[0] = block.AddFeed(absl::StrCat("d", op.schema->outputs()[0].name),
                               block.type(op.out(0)));
  GradContext context(&block, *built, out_grads, Wanted(call, block, op));
  const absl::Status status = op.schema->RunGrad(context);
  if (!status.ok()) return std::string(status.message());
  std::string text;
  for (OpId id : block.ops()) {
    if (id == *built) continue;
    const absl::Status check = CheckTypes(block, block.op(id));
    EXPECT_TRUE(check.ok()) << check;
    EXPECT_EQ(block.op(id).role, Role::kBackward);
    EXPECT_EQ(block.op(id).decision.reason, Reason::kGradientOf);
    text += harness.OpText(block.op(id));
  }
  return text + GradientText(harness, block, op, context);
}

std::string GradientInAllTypes(const Call& call) {
  Gradient(call, DType::kF32);
  const std::string text = Gradient(call, DType::kF16);
  // The same ops, in the other type throughout.
  EXPECT_EQ(Gradient(call, DType::kBF16),
            absl::StrReplaceAll(text, {{"f16", "bf16"}}));
  return text;
}

}  // namespace ops
}  // namespace halftone

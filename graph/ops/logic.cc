// Comparisons, logical ops and the choice between two tensors.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

// Out is true or false: nothing flows back.
OpSchema PredicateSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema(name);
  schema.Doc(absl::StrCat(doc, kClassOfAutocast))
      .TypeVar("T", kAnyTypes)
      .In("X", "T", "any dims")
      .NoGrad()
      .Amp(AmpClass::kGray);
  return schema;
}

void RegisterPredicates(OpRegistry& registry) {
  const auto add = [&](absl::string_view name, absl::string_view formula,
                       bool logical) {
    OpSchema schema = PredicateSchema(
        name, absl::StrCat("Out = ", formula,
                           logical ? "; what is not 0 is true." : ".",
                           " Dims go together if they are equal or one of them "
                           "is 1."));
    schema.In("Y", "T", "dims aligned with X's by axis")
        .Out("Out", "bool", "the broadcast dims")
        .Attr("axis", int64_t{-1},
              "the dim of X with which Y's first goes; -1: the last dims go "
              "together")
        .Infer(InferBinary);
    if (!logical) {
      schema.Attr("force_cpu", false, "Paddle's; where it is computed is ours");
    }
    registry.Add(std::move(schema));
  };
  add("equal", "whether X = Y; a NaN equals nothing", false);
  add("not_equal", "whether X and Y differ; a NaN differs from all", false);
  add("less_than", "whether X < Y", false);
  add("less_equal", "whether X <= Y", false);
  add("greater_than", "whether X > Y", false);
  add("greater_equal", "whether X >= Y", false);
  add("logical_and", "X and Y", true);
  add("logical_or", "X or Y", true);
  add("logical_xor", "X or Y, not both", true);
  registry.Add(
      PredicateSchema("logical_not", "Out = not X; what is not 0 is true.")
          .Out("Out", "bool", "dims of X")
          .Infer(SameDims({"X"}, "Out")));
}

// ---- where.

absl::Status InferWhere(InferContext& c) {
  Dims out = c.Input("Condition").dims;
  for (const char* slot : {"X", "Y"}) {
    auto wider = BroadcastDims(out, c.Input(slot).dims, -1);
    if (!wider.has_value()) {
      return SlotMismatch(
          c, slot,
          absl::StrCat("dims that are 1 or equal ", PrintDims(c, out),
                       ", from the last backwards"),
          "Condition, X and Y are broadcast to one shape");
    }
    out = *std::move(wider);
  }
  c.SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// OutGrad where the slot was chosen, 0 elsewhere.
absl::Status GradWhere(GradContext& g) {
  for (const char* slot : {"X", "Y"}) {
    if (!g.Wants(slot)) continue;
    HT_ASSIGN_OR_RETURN(
        const ValueId zero,
        BuildValue(g,
                   g.Emit("fill_constant").Attr("dtype", InputDType(g, slot))));
    const bool first = absl::string_view(slot) == "X";
    HT_ASSIGN_OR_RETURN(
        const ValueId chosen,
        BuildValue(g, g.Emit("where")
                          .In("Condition", g.Input("Condition"))
                          .In("X", first ? g.OutGrad("Out") : zero)
                          .In("Y", first ? zero : g.OutGrad("Out"))));
    HT_RETURN_IF_ERROR(SetSummedGrad(g, slot, chosen, -1));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterLogic(OpRegistry& registry) {
  RegisterPredicates(registry);
  registry.Add(
      OpSchema("where")
          .Doc(absl::StrCat("Out = X where Condition, else Y; all three are "
                            "broadcast, the last dims together.",
                            kClassOfAutocast))
          .TypeVar("T", kAnyTypes)
          .In("Condition", "bool", "any dims")
          .In("X", "T", "dims that go with Condition's")
          .In("Y", "T", "dims that go with both")
          .Out("Out", "T", "the broadcast dims")
          .Infer(InferWhere)
          .Grad(GradWhere)
          .Amp(AmpClass::kClear));
}

}  // namespace ops
}  // namespace halftone

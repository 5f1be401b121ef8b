#include "graph/ops/tree_sum.h"

#include <string>
#include <utility>

#include "graph/ops/infer_helpers.h"

namespace halftone {
namespace ops {
namespace {

// Each member of the list has the dims of `slot`, and so have the outputs
// called like it, if there are such.
absl::Status ExpectPartials(InferContext& c, absl::string_view slot,
                            absl::string_view list, absl::string_view out) {
  const TensorType& term = c.Input(slot);
  const auto partials = c.InputList(list);
  if (partials.empty()) return SlotMismatch(c, list, "one value or more");
  for (size_t i = 0; i < partials.size(); ++i) {
    if (partials[i].dims != term.dims) {
      return MemberMismatch(c, list, static_cast<int>(i),
                            "the dims of " + std::string(slot));
    }
  }
  if (out.empty()) return absl::OkStatus();
  if (c.OutputCount(out) != static_cast<int>(partials.size())) {
    return c.Error("slot ", out, ": expected ", partials.size(),
                   " outputs, one per value of ", list, ", found ",
                   c.OutputCount(out), "; name each output");
  }
  for (size_t i = 0; i < partials.size(); ++i) {
    c.SetOutput(out, partials[i].dims, i);
    c.SetOutputLayout(out, partials[i].layout, i);
  }
  return absl::OkStatus();
}

absl::Status InferAccumulate(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Term"}));
  return ExpectPartials(c, "X", "Partials", "Out");
}

absl::Status InferTreeSum(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Term"}));
  HT_RETURN_IF_ERROR(ExpectPartials(c, "X", "Partials", ""));
  c.SetOutput("Out", c.Input("X").dims);
  return absl::OkStatus();
}

constexpr struct {
  const char *term, *partials;
} kStatistics[] = {
    {"Mean", "Means"}, {"Variance", "Variances"}, {"Count", "Counts"}};

absl::Status ExpectStatistics(InferContext& c, bool lists) {
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Count", "Term"}));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Mean", 1, "[C]"));
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "Variance", c.Input("Mean").dims, "as in Mean"));
  const size_t levels = c.InputList("Means").size();
  for (const auto& [term, partials] : kStatistics) {
    if (c.InputList(partials).size() != levels) {
      return c.Error("slot ", partials, ": expected ", levels,
                     " values, one per value of Means, found ",
                     c.InputList(partials).size());
    }
    HT_RETURN_IF_ERROR(
        ExpectPartials(c, term, partials, lists ? partials : ""));
    if (!lists) c.SetOutput(term, c.Input(term).dims);
  }
  return absl::OkStatus();
}

absl::Status InferAccumulateStats(InferContext& c) {
  return ExpectStatistics(c, /*lists=*/true);
}
absl::Status InferCombineStats(InferContext& c) {
  return ExpectStatistics(c, /*lists=*/false);
}

OpSchema TreeSchema(absl::string_view name, absl::string_view doc,
                    absl::Status (*infer)(InferContext&)) {
  OpSchema schema(name);
  schema.Doc(doc).Infer(infer).NoGrad().Internal().Amp(AmpClass::kBlack);
  return schema;
}

OpSchema WithStatistics(OpSchema schema) {
  schema.In("Mean", "f32", "[C]: of the term")
      .In("Variance", "f32", "[C]: biased")
      .In("Count", "f32", "[]: rows per channel")
      .In("Means", "f32", "[C] per level", kList)
      .In("Variances", "f32", "[C] per level", kList)
      .In("Counts", "f32", "[] per level", kList)
      .In("Term", "i64", "[]: the term's number, from 0");
  return schema;
}

}  // namespace

void RegisterTreeSum(OpRegistry& registry) {
  registry.Add(
      TreeSchema("tree_accumulate",
                 "Term number Term of a sum in a binary tree, as a counter "
                 "counts: with k ones at the end of Term, Out[k] = Partials[k "
                 "- 1] + ... (Partials[0] + X), the others are Partials.",
                 InferAccumulate)
          .In("X", "f32", "any dims")
          .In("Partials", "f32", "dims of X, one per level", kList)
          .In("Term", "i64", "[]: the term's number, from 0")
          .Out("Out", "f32", "dims of X, one per level", kList)
          .MayAlias("Out", "Partials")
          .Layout(LayoutRule::kAny)
          .ElementWise());
  registry.Add(
      TreeSchema("tree_sum",
                 "The sum of Term + 1 terms, a power of two, of which X is the "
                 "last and tree_accumulate had the others.",
                 InferTreeSum)
          .In("X", "f32", "any dims")
          .In("Partials", "f32", "dims of X, one per level", kList)
          .In("Term", "i64", "[]: the last term's number")
          .Out("Out", "f32", "dims of X")
          .MayAlias("Out", "X")
          .Layout(LayoutRule::kAny)
          .ElementWise());
  registry.Add(WithStatistics(TreeSchema("tree_accumulate_stats",
                                         "tree_accumulate for statistics, two "
                                         "of which combine_stats combines.",
                                         InferAccumulateStats))
                   .Out("Means", "f32", "[C] per level", kList)
                   .Out("Variances", "f32", "[C] per level", kList)
                   .Out("Counts", "f32", "[] per level", kList)
                   .MayAlias("Means", "Means")
                   .MayAlias("Variances", "Variances")
                   .MayAlias("Counts", "Counts"));
  registry.Add(
      WithStatistics(TreeSchema("tree_combine_stats",
                                "tree_sum for statistics.", InferCombineStats))
          .Out("Mean", "f32", "[C]")
          .Out("Variance", "f32", "[C]")
          .Out("Count", "f32", "[]"));
}

}  // namespace ops
}  // namespace halftone

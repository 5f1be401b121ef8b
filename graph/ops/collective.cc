// Communication between ranks.
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/tree_sum.h"

namespace halftone {
namespace ops {
namespace {

// Out[i] has the dims and layout of X[i].
absl::Status InferMembers(InferContext& c) {
  const auto x = c.InputList("X");
  if (x.empty()) return SlotMismatch(c, "X", "one value or more");
  if (c.OutputCount("Out") != static_cast<int>(x.size())) {
    return c.Error("slot Out: expected ", x.size(),
                   " values, one per member of X, found ", c.OutputCount("Out"),
                   "; name each output");
  }
  for (size_t i = 0; i < x.size(); ++i) {
    c.SetOutput("Out", x[i].dims, i);
    c.SetOutputLayout("Out", x[i].layout, i);
  }
  return absl::OkStatus();
}

absl::Status ExpectReduction(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(c, "gradient_scale", {"none", "pre"}));
  HT_RETURN_IF_ERROR(ExpectRange(c, "predivide", 0, 1e30));
  if (c.Int("bucket") < 0) return AttrMismatch(c, "bucket", "0 or more");
  return absl::OkStatus();
}

absl::Status InferAllReduce(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(
      c, "of", {"gradient", "totals", "statistics", "counts", "parameters"}));
  HT_RETURN_IF_ERROR(ExpectWord(c, "order", {"any", "ranks", "tree"}));
  HT_RETURN_IF_ERROR(ExpectReduction(c));
  const int64_t group = c.Int("group_size");
  if (group < 0) return AttrMismatch(c, "group_size", "0 or more ranks");
  if (group > 0 && (c.Str("of") != "statistics" || c.Str("order") != "ranks")) {
    return AttrMismatch(c, "group_size",
                        "0 but for of=statistics, order=ranks");
  }
  return InferMembers(c);
}

// Out[i] is X[i] by rank, or the other way round.
absl::Status ExpectSharded(const InferContext& c, bool sharded) {
  for (const TensorType& x : c.InputList("X")) {
    if (x.sharded == sharded) continue;
    return c.Error("slot X: expected ", sharded ? "shards" : "whole tensors",
                   ", found ", c.Print(x));
  }
  return absl::OkStatus();
}

absl::Status InferShards(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectSharded(c, false));
  HT_RETURN_IF_ERROR(InferMembers(c));
  for (TensorType& out : c.outputs()[0]) out.sharded = true;
  return absl::OkStatus();
}

absl::Status InferReduceScatter(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(c, "of", {"gradient"}));
  HT_RETURN_IF_ERROR(ExpectWord(c, "order", {"any"}));
  HT_RETURN_IF_ERROR(ExpectReduction(c));
  return InferShards(c);
}

absl::Status InferAllGather(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectSharded(c, true));
  return InferMembers(c);
}

absl::Status InferBroadcast(InferContext& c) {
  if (c.Int("root") < 0) return AttrMismatch(c, "root", "a rank, 0 or more");
  return InferMembers(c);
}

// `in_place`: a result lies where its operand did.
OpSchema CollectiveSchema(absl::string_view name, absl::string_view doc,
                          const DTypeSet& dtypes, bool in_place = true) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", dtypes)
      .In("X", "T", "one or more values, any dims", kList | kContiguous)
      .Out("Out", "T", "one per member of X, its dims", kList | kContiguous)
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kGray)
      .Layout(LayoutRule::kAny);
  if (in_place) schema.MayAlias("Out", "X");
  return schema;
}

// The same for all reductions: one becomes another where it stands.
OpSchema WithReductionAttrs(OpSchema schema) {
  return std::move(
      schema
          .Attr("of", std::string("gradient"),
                "gradient, totals, statistics, counts or parameters: what is "
                "reduced")
          .Attr("gradient_scale", std::string("none"),
                "pre: X is multiplied by p = 2^-ceil(log2 world) before the "
                "sum; none: it is not")
          .Attr("predivide", 0.0,
                "above 0, with pre: p = 1 / predivide instead")
          .Attr("order", std::string("any"),
                "ranks: X of all ranks is gathered and added in their order, "
                "in f32, rounded once; tree: likewise, in a binary tree, "
                "neighbours first; any: as the communicator adds")
          .Attr("delayed", false,
                "after the whole backward, not beside it: on the stream that "
                "computes")
          .Attr("bucket", int64_t{0}, "index of the bucket, in order"));
}

// Between whole tensors and what each rank has of them.
void RegisterSharding(OpRegistry& registry) {
  registry.Add(
      WithReductionAttrs(
          CollectiveSchema("reduce_scatter",
                           "Out = this rank's shard of the sum of X over all "
                           "ranks: of=gradient, order=any.",
                           kFloatTypes, /*in_place=*/false))
          .Infer(InferReduceScatter));
  registry.Add(CollectiveSchema("all_gather",
                                "Out = the tensors of which X is each rank's "
                                "shard.",
                                kFloatTypes, /*in_place=*/false)
                   .Infer(InferAllGather));
  registry.Add(CollectiveSchema("take_shard",
                                "Out = this rank's shard of X, zeros behind "
                                "its end.",
                                kFloatTypes, /*in_place=*/false)
                   .Infer(InferShards));
}

}  // namespace

void RegisterCollective(OpRegistry& registry) {
  registry.Add(
      WithReductionAttrs(CollectiveSchema("all_reduce",
                                          "Out = the sum of X over all ranks.",
                                          kFloatTypes))
          .Attr("group_size", int64_t{0},
                "above 0: over so many consecutive ranks, each group by "
                "itself; of=statistics, order=ranks")
          .Infer(InferAllReduce));
  RegisterSharding(registry);
  RegisterTreeSum(registry);
  registry.Add(CollectiveSchema("broadcast", "Out = X of rank root.", kAnyTypes)
                   .Attr("root", int64_t{0}, "the rank whose values count")
                   .Infer(InferBroadcast));
}

}  // namespace ops
}  // namespace halftone

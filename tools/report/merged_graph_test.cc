#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/report/diff_html.h"
#include "tools/report/graph_data.h"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kNet[] = R"(
    name: "net"
    feed { name: "x" dtype: F32 dims: [-1, 8] }
    param { name: "w" dims: [8, 8] init { constant: 1 } }
    op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" }
         out { slot: "Out" var: "a" } }
    op { type: "relu" in { slot: "X" var: "a" } out { slot: "Out" var: "b" } }
    op { type: "softmax" in { slot: "X" var: "b" }
         out { slot: "Out" var: "c" } }
    output: "c")";

std::string WithTanh() {
  return absl::StrReplaceAll(
      kNet, {{R"(op { type: "softmax" in { slot: "X" var: "b" })",
              R"(op { type: "tanh" in { slot: "X" var: "a" }
                      out { slot: "Out" var: "t" } }
                 op { type: "softmax" in { slot: "X" var: "t" })"}});
}

GraphData Merged(const CompiledModel& before, const CompiledModel& after) {
  return MergedGraph(GraphOf(FixedFacts(before)), GraphOf(FixedFacts(after)));
}

std::map<std::string, GraphChange> ChangesOf(const GraphData& graph) {
  std::map<std::string, GraphChange> changes;
  for (const GraphOp& op : graph.ops) {
    if (op.change != GraphChange::kNone) changes[op.row->name()] = op.change;
  }
  return changes;
}

TEST(MergedGraph, OfOneModelNothingChanges) {
  const GraphData merged = Merged(Convnet(), Convnet());
  const GraphData graph = GraphOf(FixedFacts(Convnet()));
  ASSERT_EQ(merged.ops.size(), graph.ops.size());
  EXPECT_TRUE(ChangesOf(merged).empty());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    EXPECT_EQ(merged.ops[i].of, graph.ops[i].of);
    ASSERT_EQ(merged.ops[i].inputs.size(), graph.ops[i].inputs.size());
    for (size_t k = 0; k < graph.ops[i].inputs.size(); ++k) {
      EXPECT_EQ(merged.ops[i].inputs[k].from, graph.ops[i].inputs[k].from);
      EXPECT_EQ(merged.ops[i].inputs[k].change, GraphChange::kNone);
    }
  }
  for (const GraphCast& cast : merged.casts) {
    EXPECT_EQ(cast.change, GraphChange::kNone);
  }
}

TEST(MergedGraph, PrecisionsAndCastsThatChange) {
  const CompiledModel black =
      CompileConvnet({{"amp.custom_black_list", "matmul", "--black"}});
  const GraphData merged = Merged(Convnet(), black);
  const auto changes = ChangesOf(merged);
  EXPECT_EQ(changes.at("fc"), GraphChange::kPrecision);
  EXPECT_EQ(changes.count("conv1"), 0);
  std::map<std::string, GraphChange> casts;
  for (const GraphCast& cast : merged.casts) {
    if (cast.change != GraphChange::kNone) {
      casts[cast.row->name()] = cast.change;
    }
  }
  EXPECT_EQ(casts.at("flat.cast_fp32"), GraphChange::kAdded);
  EXPECT_EQ(casts.at("logits.cast_fp32"), GraphChange::kRemoved);
  for (const GraphOp& op : merged.ops) {
    if (op.row->name() != "fc" && op.row->name() != "ce") continue;
    std::map<GraphChange, int> edges;
    for (const GraphEdge& edge : op.inputs) ++edges[edge.change];
    EXPECT_GE(edges[GraphChange::kAdded], 1) << op.row->name();
    EXPECT_GE(edges[GraphChange::kRemoved], 1) << op.row->name();
    if (op.row->name() == "fc") {
      EXPECT_EQ(op.was->precision(), "f16");
    }
  }
}

TEST(MergedGraph, OpsOfOneProgramStandWhereTheyWere) {
  const CompiledModel plain = CompileText(kNet), tanh = CompileText(WithTanh());
  for (const bool added : {true, false}) {
    const GraphData merged = added ? Merged(plain, tanh) : Merged(tanh, plain);
    std::vector<std::string> names;
    for (const GraphOp& op : merged.ops) names.push_back(op.row->name());
    EXPECT_THAT(names, ElementsAre("a", "b", "t", "c"));
    EXPECT_THAT(ChangesOf(merged),
                UnorderedElementsAre(Pair(
                    "t", added ? GraphChange::kAdded : GraphChange::kRemoved)));
    const GraphOp& softmax = merged.ops[3];
    ASSERT_EQ(softmax.inputs.size(), 2);
    EXPECT_EQ(softmax.inputs[0].from, added ? 2 : 1);
    EXPECT_EQ(softmax.inputs[1].from, added ? 1 : 2);
    EXPECT_EQ(softmax.inputs[1].change, GraphChange::kRemoved);
  }
}

TEST(DiffHtml, EscapesAndCounts) {
  const std::string name = "</script><b>&";
  const CompiledModel plain = CompileText(kNet);
  const CompiledModel other = CompileText(absl::StrReplaceAll(
      WithTanh(), {{"type: \"tanh\"",
                    absl::StrCat("name: \"", name, "\" type: \"tanh\"")}}));
  const auto difference = DifferenceOf(plain, other);
  ASSERT_TRUE(difference.ok()) << difference.status();
  const auto page = DiffHtml(plain, other, *difference);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(
      *page,
      AllOf(HasSubstr("+ only after 1<"), HasSubstr("- only before 0<"),
            HasSubstr("&lt;/script&gt;&lt;b&gt;&amp;"),
            HasSubstr("\\u003c/script>\\u003cb>&"), Not(HasSubstr(name))));
}

TEST(DiffHtml, ProgramsWithoutACommonOp) {
  const CompiledModel plain = CompileText(kNet);
  const auto page = DiffHtml(Convnet(), plain, Difference());
  EXPECT_THAT(std::string(page.status().message()),
              AllOf(HasSubstr("(first op: x)"), HasSubstr("(first op: a)"),
                    HasSubstr("no op in common")));
}

}  // namespace
}  // namespace tools
}  // namespace halftone

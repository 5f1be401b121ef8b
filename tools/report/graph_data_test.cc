#include "tools/report/graph_data.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int IndexOf(const GraphData& graph, const std::string& name) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (graph.ops[i].row->name() == name) return static_cast<int>(i);
  }
  ADD_FAILURE() << "no op " << name;
  return 0;
}

TEST(GraphData, EdgesLookThroughCasts) {
  const ModelFacts facts = FixedFacts(Convnet());
  const GraphData graph = GraphOf(facts);
  const GraphOp& conv = graph.ops[IndexOf(graph, "conv1")];
  ASSERT_EQ(conv.inputs.size(), 3);
  EXPECT_EQ(conv.inputs[0].from, IndexOf(graph, "x"));
  EXPECT_EQ(graph.casts[conv.inputs[0].cast].row->name(), "x.cast_fp16");
  EXPECT_EQ(conv.inputs[1].from, -1);
  EXPECT_EQ(conv.inputs[1].value, "conv1.w");
  const GraphOp& norm = graph.ops[IndexOf(graph, "bn1")];
  EXPECT_EQ(norm.inputs[0].from, IndexOf(graph, "conv1"));
  EXPECT_EQ(norm.inputs[0].cast, -1);
  // Backward ops stand beside what they are the gradients of.
  int of_conv = 0;
  for (const GraphOp& op : graph.ops) {
    if (op.of == IndexOf(graph, "conv1")) ++of_conv;
  }
  EXPECT_GE(of_conv, 1);
}

// A text by its number, see GraphJson.
std::string TextOf(const nlohmann::json& graph, const nlohmann::json& number) {
  return graph["strings"][number.get<size_t>()];
}

TEST(GraphJson, WhatRanksSendEachOther) {
  const nlohmann::json graph = GraphJson(FixedFacts(Convnet()));
  std::set<std::string> made;
  for (const auto& op : graph["ops"]) {
    for (const auto& output : op[8]) made.insert(output[0]);
  }
  int64_t low_bytes = 0, low_members = 0;
  std::set<std::string> kinds;
  for (const auto& collective : graph["collectives"]) {
    kinds.insert(TextOf(graph, collective[1]));
    if (TextOf(graph, collective[1]) != "all_reduce of gradient" ||
        TextOf(graph, collective[2]) != "f16") {
      continue;
    }
    low_bytes += collective[3].get<int64_t>();
    for (const auto& member : collective[4]) {
      EXPECT_EQ(made.count(member), 1u) << member;
      ++low_members;
    }
  }
  EXPECT_EQ(low_bytes, 57876);
  EXPECT_EQ(low_members, 6);
  EXPECT_THAT(kinds, ::testing::Contains("all_reduce of totals"));
}

TEST(GraphDot, OpsScopesAndCasts) {
  const CompiledModel model = CompileText(R"(
    name: "a \"b\""
    feed { name: "x" dtype: F32 dims: [-1, 8] }
    param { name: "w" dims: [8, 8] init { constant: 1 } }
    op { name: "net/one" type: "matmul" in { slot: "X" var: "x" }
         in { slot: "Y" var: "w" } out { slot: "Out" var: "a" } }
    op { name: "net/two" type: "softmax" in { slot: "X" var: "a" }
         out { slot: "Out" var: "b" } }
    output: "b")");
  const ModelFacts facts = FixedFacts(model);
  const auto dot = GraphDot(facts, "");
  ASSERT_TRUE(dot.ok()) << dot.status();
  EXPECT_THAT(*dot,
              AllOf(HasSubstr("digraph \"a \\\"b\\\"\" {\n"),
                    HasSubstr("subgraph cluster0 { label=\"net\"\n"),
                    HasSubstr("n0 [label=\"net/one\\nmatmul, f16\\nWHITE_LIST"
                              "\" fillcolor=\"#dcefdc\"]\n"),
                    HasSubstr("n0 -> n1 [color=\"#c02a2a\" label=\"f16 to f32"
                              "\\n48 B, "),
                    HasSubstr("\"value x\" -> n0 [color=")));
  const auto part = GraphDot(facts, "*/two");
  ASSERT_TRUE(part.ok());
  EXPECT_THAT(*part, Not(HasSubstr("n0")));
  EXPECT_THAT(std::string(GraphDot(facts, "nte/*").status().message()),
              HasSubstr("--scope nte/*: no op has such a name"));
}

}  // namespace
}  // namespace tools
}  // namespace halftone

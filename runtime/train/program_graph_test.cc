#include "runtime/train/program_graph.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(ProgramGraph, HasOpsFeedsAndCells) {
  const auto program = Parse(R"(program "p" dim B
cell w : f32[4] parameter trainable applied init=constant(1)
entry train {
  feed x : f32[B,4]
  h: elementwise_mul(X=x, Y=w) -> (Out=h : f32[B,4]) forward f32 WHITE_LIST
  fused: fusion(X=[h]) -> (Out=[a : f32[B,4], b : f32[B,4]]) {pattern="two"} forward f16 WHITE_LIST body {
    feed h : f32[B,4]
    a: relu(X=h) -> (Out=a : f32[B,4]) forward f16 WHITE_LIST
    b: relu(X=a) -> (Out=b : f32[B,4]) forward f16 WHITE_LIST
    return a, b
  }
  c: relu(X=b) -> (Out=c : f32[B,4]) backward f32 WHITE_LIST
}
)",
                             "test");
  ASSERT_TRUE(program.ok()) << program.status();
  const GraphEvent graph = GraphOf(**program);
  const auto find = [&graph](const std::string& name) {
    return std::find_if(graph.nodes.begin(), graph.nodes.end(),
                        [&](const GraphNode& n) { return n.name == name; });
  };
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(find("x")->op, "feed");
  EXPECT_THAT(find("x")->outputs[0].dims, ElementsAre(-1, 4));
  EXPECT_EQ(find("w")->op, "cell");
  const auto h = find("h"), fused = find("fused"), c = find("c");
  EXPECT_EQ(h->op, "elementwise_mul");
  ASSERT_EQ(h->inputs.size(), 2u);
  EXPECT_EQ(graph.nodes[h->inputs[1].node].name, "w");
  EXPECT_EQ(fused->op, "two");
  EXPECT_EQ(fused->outputs.size(), 2u);
  EXPECT_THAT(fused->attributes,
              ElementsAre(Pair("precision", "f16"), Pair("role", "forward")));
  ASSERT_EQ(c->inputs.size(), 1u);
  EXPECT_EQ(graph.nodes[c->inputs[0].node].name, "fused");
  EXPECT_EQ(c->inputs[0].output, 1);
}

TEST(ProgramGraph, WithoutTrainingIsEmpty) {
  EXPECT_TRUE(GraphOf(**Parse("program \"p\"\n", "test")).nodes.empty());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

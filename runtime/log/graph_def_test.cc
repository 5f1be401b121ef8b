#include "runtime/log/graph_def.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

// node { name: "layer1/conv1" op: "conv2d" input: "x" input: "bn:1"
//   attr { key: "T" value { type: DT_HALF } }
//   attr { key: "_output_shapes"
//     value { list { shape { dim { size: -1 } dim { size: 16 } } } } }
//   attr { key: "role" value { s: "forward" } } }
TEST(GraphDef, HoldsNodes) {
  GraphNode x, bn, conv;
  x.name = "x";
  x.op = "feed";
  bn.name = "bn";
  bn.op = "batch_norm";
  conv.name = "layer1/conv1";
  conv.op = "conv2d";
  conv.inputs = {{0, 0}, {1, 1}};
  conv.outputs = {{"f16", {-1, 16}}};
  conv.attributes = {{"role", "forward"}};
  const std::string minus_one = std::string(9, '\xff') + "\x01";
  const std::string shapes =
      "\x0a\x13\x3a\x11\x12\x0b\x08" + minus_one + "\x12\x02\x08\x10";
  const std::string node = std::string(
                               "\x0a\x0clayer1/conv1\x12\x06"
                               "conv2d\x1a\x01x\x1a\x04"
                               "bn:1") +
                           "\x2a\x07\x0a\x01T\x12\x02\x30\x13" +
                           "\x2a\x27\x0a\x0e_output_shapes\x12\x15" + shapes +
                           "\x2a\x11\x0a\x04role\x12\x09\x12\x07" + "forward";
  EXPECT_THAT(GraphDef({x, bn, conv}), HasSubstr(node));
}

std::string NameOf(const std::string& name) {
  GraphNode node;
  node.name = name;
  const std::string bytes = GraphDef({node});
  return bytes.substr(4, bytes[3]);
}

TEST(GraphDef, NamesAreTensorFlows) {
  EXPECT_EQ(NameOf("layer1/conv1.w-2_b"), "layer1/conv1.w-2_b");
  EXPECT_EQ(NameOf("@loss_scaling.next"), "step/loss_scaling.next");
  EXPECT_EQ(NameOf("a:b c\x1b["), "a_b_c__");
  EXPECT_EQ(NameOf("_a"), "x_a");
  EXPECT_EQ(NameOf(""), "x");
}

TEST(GraphDef, EachNameIsThereOnce) {
  GraphNode a, b;
  a.name = "a b";
  b.name = "a:b";
  EXPECT_THAT(GraphDef({a, b}), HasSubstr("a_b_1"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

#include "passes/update/update_groups.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "graph/base/error.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

proto::Optimizer Parsed(const std::string& text) {
  proto::Optimizer optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &optimizer));
  return optimizer;
}

// a and b are read low, b's gradient was reduced in f32; c and d only in f32.
constexpr char kProgram[] = R"(program "p"
cell a : f32[2] parameter trainable applied init=constant(0)
cell b : f32[2] parameter trainable applied init=constant(0)
cell c : f32[2] parameter trainable applied init=constant(0)
cell d : f32[2] parameter trainable applied init=constant(0)
entry train {
  feed low : f16[2]
  feed full : f32[2]
  a.low: cast(X=a) -> (Out=a.low : f16[2]) {to=f16}   forward f16 WHITE_LIST
  b.low: cast(X=b) -> (Out=b.low : f16[2]) {to=f16}   forward f16 WHITE_LIST
}
)";

std::vector<std::vector<std::string>> Groups(const std::string& text,
                                             std::vector<UpdateGroup>* groups) {
  const auto program = Parse(kProgram, "p.ht");
  EXPECT_TRUE(program.ok()) << program.status();
  const Block& train = (*program)->FindEntry("train")->block();
  std::vector<ParameterGradient> gradients(4);
  for (int i = 0; i < 4; ++i) {
    gradients[i].parameter = CellId(i);
    gradients[i].reduced = train.FindValue(i == 0 ? "low" : "full");
  }
  const proto::Optimizer optimizer = Parsed(text);
  *groups = *GroupUpdates(**program, train, optimizer, gradients);
  std::vector<std::vector<std::string>> names;
  for (const UpdateGroup& group : *groups) {
    names.emplace_back();
    for (const ParameterGradient& member : group.members) {
      names.back().push_back((*program)->cell(member.parameter).name);
    }
  }
  return names;
}

TEST(UpdateGroupsTest, ByReducedDTypeAndLowRead) {
  std::vector<UpdateGroup> groups;
  EXPECT_THAT(
      Groups("sgd { weight_decay: 0.5 }", &groups),
      ElementsAre(ElementsAre("a"), ElementsAre("b"), ElementsAre("c", "d")));
  EXPECT_EQ(groups[0].method.weight_decay, 0.5);
  EXPECT_EQ(groups[0].lr_scale, 1);
}

TEST(UpdateGroupsTest, TheLastGroupThatMatchesWins) {
  std::vector<UpdateGroup> groups;
  EXPECT_THAT(Groups(R"(momentum { weight_decay: 0.5 }
                group { match: "*" weight_decay: 0.1 }
                group { match: "d" lr_scale: 2 } group { match: "none" })",
                     &groups),
              ElementsAre(ElementsAre("a"), ElementsAre("b"), ElementsAre("c"),
                          ElementsAre("d")));
  EXPECT_EQ(groups[2].method.weight_decay, 0.1);
  EXPECT_EQ(groups[3].method.weight_decay, 0.5)
      << "the group says nothing of it";
  EXPECT_EQ(groups[3].lr_scale, 2);
}

// What a group says in place of its method, whatever the method calls it.
TEST(UpdateGroupsTest, AGroupOverridesItsMethod) {
  std::vector<UpdateGroup> groups;
  Groups(R"(lars {} group { match: "d" weight_decay: 0.25 momentum: 0.5
                            trust_ratio: false })",
         &groups);
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[2].method.weight_decay, 0.0005);
  EXPECT_EQ(groups[3].method.weight_decay, 0.25);
  EXPECT_EQ(groups[3].method.attrs[0],
            std::make_pair(std::string("mu"), AttrValue(0.5)));
  EXPECT_EQ(groups[3].method.attrs[3],
            std::make_pair(std::string("trust_ratio"), AttrValue(false)));
}

TEST(UpdateGroupsTest, Methods) {
  EXPECT_EQ(MethodOf(Parsed("sgd {}"))->slots.size(), 0u);
  EXPECT_EQ(MethodOf(Parsed("momentum {}"))->slots[0].suffix, "velocity");
  EXPECT_EQ(MethodOf(Parsed("adam {}"))->slots[1].suffix, "moment2");
  EXPECT_TRUE(MethodOf(Parsed("adamw {}"))->reads_applied);
  EXPECT_EQ(MethodOf(Parsed("rmsprop {}"))->slots.size(), 1u);
  EXPECT_EQ(MethodOf(Parsed("rmsprop { momentum: 0.5 }"))->slots[1].suffix,
            "momentum");
  EXPECT_EQ(MethodOf(Parsed("rmsprop { momentum: 0.5 centered: true }"))
                ->slots.size(),
            3u);
  const auto none = MethodOf(proto::Optimizer());
  EXPECT_EQ(ExitCodeOf(none.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no method"));
}

}  // namespace
}  // namespace passes
}  // namespace halftone

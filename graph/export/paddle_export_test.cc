#include "graph/export/paddle_export.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "proto/paddle.pb.h"

namespace halftone {
namespace {

using proto::paddle::OpDesc;
using ::testing::ElementsAre;

constexpr char kProgram[] = R"(program "p" dim B
loss loss over ce
cell w : f32[4,3] parameter trainable applied init=constant(0)
cell s : f32[] scaler applied init=constant(1)
entry train {
  feed x : f32[B,4]
  feed label : i64[B]
  w.low: cast(X=w) -> (Out=w.low : f16[4,3]) {to=f16}   forward f16 WHITE_LIST <- y
  x.low: cast(X=x) -> (Out=x.low : f16[B,4]) {to=f16}   forward f16 WHITE_LIST <- y
  y: matmul(X=x.low, Y=w.low) -> (Out=y : f16[B,3])   forward f16 WHITE_LIST
  r: reshape(X=y) -> (Out=r : f16[3*B]) {shape=[-1]}   forward f16 CLEAR_FOLLOWS
  y.wide: cast(X=y) -> (Out=y.wide : f32[B,3]) {to=f32}   forward f32 BLACK_LIST <- ce
  ce: softmax_with_cross_entropy(Logits=y.wide, Label=label) -> (Loss=ce : f32[B])   forward f32 BLACK_LIST
  loss: mean(X=ce) -> (Out=loss : f32[])   forward f32 BLACK_LIST
  commit s <- loss
}
)";

proto::paddle::ProgramDesc Exported() {
  const auto program = Parse(kProgram, "p");
  EXPECT_TRUE(program.ok()) << program.status();
  return ToPaddleProgram(**program, *(*program)->FindEntry(kTrainEntry));
}

const OpDesc::Attr* FindAttr(const OpDesc& op, const std::string& name) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

TEST(PaddleExportTest, VariablesHaveTypesAndRoles) {
  const proto::paddle::ProgramDesc made = Exported();
  EXPECT_EQ(made.version().version(), 2006002);
  ASSERT_EQ(made.blocks_size(), 1);
  std::map<std::string, proto::paddle::VarDesc> vars;
  for (const auto& var : made.blocks(0).vars()) vars[var.name()] = var;
  const auto tensor = [&](const std::string& name) {
    return vars.at(name).type().lod_tensor().tensor();
  };
  EXPECT_EQ(tensor("w").data_type(), proto::paddle::VarType::FP32);
  EXPECT_THAT(tensor("w").dims(), ElementsAre(4, 3));
  EXPECT_TRUE(vars.at("w").is_parameter());
  EXPECT_TRUE(vars.at("w").persistable());
  EXPECT_FALSE(vars.at("w").stop_gradient());
  EXPECT_TRUE(vars.at("s").persistable());
  EXPECT_FALSE(vars.at("s").is_parameter());
  EXPECT_EQ(tensor("y").data_type(), proto::paddle::VarType::FP16);
  EXPECT_THAT(tensor("y").dims(), ElementsAre(-1, 3));
  EXPECT_THAT(tensor("r").dims(), ElementsAre(-1));
  EXPECT_TRUE(vars.at("label").need_check_feed());
  EXPECT_EQ(tensor("label").data_type(), proto::paddle::VarType::INT64);
}

TEST(PaddleExportTest, OpsAreCalledAsPaddlesAre) {
  const proto::paddle::ProgramDesc made = Exported();
  std::vector<std::string> types;
  for (const OpDesc& op : made.blocks(0).ops()) types.push_back(op.type());
  EXPECT_THAT(types,
              ElementsAre("cast", "cast", "matmul_v2", "reshape2", "cast",
                          "softmax_with_cross_entropy", "mean", "assign"));
  const OpDesc& cast = made.blocks(0).ops(0);
  EXPECT_EQ(FindAttr(cast, "in_dtype")->i(), proto::paddle::VarType::FP32);
  EXPECT_EQ(FindAttr(cast, "out_dtype")->i(), proto::paddle::VarType::FP16);
  EXPECT_EQ(FindAttr(cast, "op_role")->i(), 0);
  const OpDesc& product = made.blocks(0).ops(2);
  EXPECT_EQ(product.inputs(1).parameter(), "Y");
  EXPECT_THAT(product.inputs(1).arguments(), ElementsAre("w.low"));
  const OpDesc& reshape = made.blocks(0).ops(3);
  EXPECT_EQ(FindAttr(reshape, "shape")->type(), OpDesc::INTS);
  EXPECT_THAT(FindAttr(reshape, "shape")->ints(), ElementsAre(-1));
  EXPECT_EQ(FindAttr(made.blocks(0).ops(6), "op_role")->i(), 256);
}

// As precision O1 leaves them: w is read by its update alone, v by nothing.
TEST(PaddleExportTest, LowCopiesAreCastFromTheirParameters) {
  const auto program = Parse(R"(program "p" dim B
loss y over y
cell w : f32[4] parameter trainable applied init=constant(0)
cell w.low : f16[4] derived(w) applied
cell v : f32[4] parameter trainable applied init=constant(0)
cell v.low : f16[4] derived(v) applied
cell u.low : f16[4] derived(v) applied
entry train {
  y: elementwise_add(X=w.low, Y=v.low) -> (Out=y : f16[4])   forward f16 WHITE_LIST
  w.new: elementwise_add(X=w, Y=w) -> (Out=w.new : f32[4])   optimize f32 WHITE_LIST
  w.low.new: cast(X=w.new) -> (Out=w.low.new : f16[4]) {to=f16}   optimize f16 WHITE_LIST
  commit w <- w.new
  commit w.low <- w.low.new
}
)",
                             "p");
  ASSERT_TRUE(program.ok()) << program.status();
  const proto::paddle::ProgramDesc made =
      ToPaddleProgram(**program, *(*program)->FindEntry(kTrainEntry));
  std::map<std::string, proto::paddle::VarDesc> vars;
  for (const auto& var : made.blocks(0).vars()) vars[var.name()] = var;
  std::vector<std::string> ops;
  for (const OpDesc& op : made.blocks(0).ops()) {
    ops.push_back(absl::StrCat(op.type(), " ", op.inputs(0).arguments(0), " ",
                               op.outputs(0).arguments(0)));
  }
  EXPECT_THAT(ops,
              ElementsAre("cast w w.low", "cast v v.low",
                          "elementwise_add w.low y", "elementwise_add w w.new",
                          "cast w.new w.low.new", "assign w.new w"));
  const OpDesc& cast = made.blocks(0).ops(0);
  EXPECT_EQ(FindAttr(cast, "in_dtype")->i(), proto::paddle::VarType::FP32);
  EXPECT_EQ(FindAttr(cast, "out_dtype")->i(), proto::paddle::VarType::FP16);
  for (const std::string name : {"w", "v"}) {
    EXPECT_TRUE(vars.at(name).persistable() && vars.at(name).is_parameter());
    const auto& low = vars.at(name + ".low");
    EXPECT_FALSE(low.persistable() || low.is_parameter());
    EXPECT_FALSE(low.stop_gradient());
  }
  EXPECT_EQ(vars.count("u.low"), 0u);
}

TEST(PaddleExportTest, ACommitIsAnAssignment) {
  const proto::paddle::ProgramDesc made = Exported();
  const OpDesc& commit = *made.blocks(0).ops().rbegin();
  EXPECT_THAT(commit.inputs(0).arguments(), ElementsAre("loss"));
  EXPECT_THAT(commit.outputs(0).arguments(), ElementsAre("s"));
  EXPECT_EQ(FindAttr(commit, "op_role")->i(), 2);
}

}  // namespace
}  // namespace halftone

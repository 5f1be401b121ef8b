#include "graph/schema/op_schema.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/op.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/test_ops.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Nothing(InferContext&) { return absl::OkStatus(); }

// A complete schema but for what `change` does to it.
std::string CheckOf(std::function<void(OpSchema&)> change) {
  OpSchema schema("op");
  schema.TypeVar("T", kFloatTypes).In("X", "T", "x").Out("Out", "T", "out");
  change(schema);
  const absl::Status status = schema.Check();
  return status.ok() ? "ok" : Message(status);
}

OpSchema& Complete(OpSchema& s) {
  return s.Doc("doc").Infer(Nothing).NoGrad().Amp(AmpClass::kGray);
}

TEST(OpSchemaTest, CheckNamesWhatIsMissing) {
  EXPECT_EQ(CheckOf([](OpSchema& s) { Complete(s); }), "ok");
  EXPECT_EQ(CheckOf([](OpSchema& s) {
              s.Infer(Nothing).NoGrad().Amp(AmpClass::kGray);
            }),
            "op op: no Doc");
  EXPECT_EQ(
      CheckOf([](OpSchema& s) { s.Doc("doc").NoGrad().Amp(AmpClass::kGray); }),
      "op op: no Infer");
  EXPECT_EQ(CheckOf([](OpSchema& s) {
              s.Doc("doc").Infer(Nothing).Amp(AmpClass::kGray);
            }),
            "op op: expected either Grad or NoGrad()");
  EXPECT_EQ(CheckOf([](OpSchema& s) {
              Complete(s).Grad([](GradContext&) { return absl::OkStatus(); });
            }),
            "op op: expected either Grad or NoGrad()");
  EXPECT_EQ(CheckOf([](OpSchema& s) { s.Doc("doc").Infer(Nothing).NoGrad(); }),
            "op op: no Amp class");
}

TEST(OpSchemaTest, CheckRefusesContradictions) {
  const auto after = [](std::function<void(OpSchema&)> change) {
    return CheckOf([&change](OpSchema& s) { change(Complete(s)); });
  };
  EXPECT_THAT(after([](OpSchema& s) { s.In("Y", "U", "y"); }),
              HasSubstr("slot Y has type U, which is neither"));
  EXPECT_THAT(after([](OpSchema& s) { s.In("X", "T", "again"); }),
              HasSubstr("two inputs are named X"));
  EXPECT_THAT(after([](OpSchema& s) { s.Out("Out", "T", "again"); }),
              HasSubstr("two outputs are named Out"));
  EXPECT_THAT(
      after([](OpSchema& s) { s.Attr("a", 1.0, "").Attr("a", 2.0, ""); }),
      HasSubstr("two attributes are named a"));
  EXPECT_THAT(after([](OpSchema& s) { s.TypeVar("T", kLowTypes); }),
              HasSubstr("two type variables are named T"));
  EXPECT_THAT(after([](OpSchema& s) { s.TypeVar("U", {}); }),
              HasSubstr("type variable U"));
  EXPECT_THAT(after([](OpSchema& s) { s.TypeVar("f16", kAnyTypes); }),
              HasSubstr("type variable f16"));
  EXPECT_THAT(after([](OpSchema& s) { s.TypeVar("U", kAnyTypes, "V"); }),
              HasSubstr("U defaults to V"));
  EXPECT_THAT(after([](OpSchema& s) { s.In("M", "", "m", kMixed); }),
              HasSubstr("slot M is kMixed, but no list"));
  EXPECT_THAT(after([](OpSchema& s) { s.ImplicitIn("S", "i64", "seed"); }),
              HasSubstr("seed is not a well-known name"));
  EXPECT_THAT(after([](OpSchema& s) { s.Guarded(); }),
              HasSubstr("Guarded, but no input FoundInf"));
}

TEST(OpSchemaTest, Declaration) {
  const OpSchema& matmul = *Ops().Find("matmul");
  EXPECT_EQ(matmul.name(), "matmul");
  EXPECT_EQ(matmul.FindInput("Bias"), 2);
  EXPECT_TRUE(matmul.inputs()[2].optional());
  EXPECT_EQ(matmul.FindInput("Out"), -1);
  EXPECT_EQ(matmul.FindOutput("Out"), 0);
  EXPECT_EQ(matmul.FindAttr("alpha"), 1);
  EXPECT_EQ(KindOf(matmul.attrs()[3].default_value), AttrKind::kString);
  EXPECT_EQ(matmul.FindTypeVar("TOut"), 1);
  EXPECT_EQ(matmul.FindTypeVar("f32"), -1);
  EXPECT_TRUE(matmul.has_grad());
  EXPECT_EQ(matmul.accumulate(), DType::kF32);
  EXPECT_EQ(matmul.layout(), LayoutRule::kRowMajor);
  const OpSchema& update = *Ops().Find("update");
  EXPECT_TRUE(update.guarded());
  EXPECT_TRUE(update.no_merge());
  EXPECT_FALSE(update.has_grad());
  EXPECT_EQ(update.inputs()[2].implicit, "@seed");
  EXPECT_EQ(update.outputs()[0].may_alias, 1);
  const OpSchema& cast = *Ops().Find("cast");
  EXPECT_TRUE(cast.attrs()[0].required);
  EXPECT_EQ(KindOf(cast.attrs()[0].default_value), AttrKind::kDType);
}

TEST(OpSchemaTest, AttributesOfAnOp) {
  const OpSchema& matmul = *Ops().Find("matmul");
  Program program;
  Op op;
  op.schema = &matmul;
  EXPECT_EQ(AttrAs<double>(op, "alpha"), 1.0);
  AttrList attrs;
  SetAttr(matmul, "mode", std::string("fancy"), &attrs);
  SetAttr(matmul, "trans_x", true, &attrs);
  SetAttr(matmul, "alpha", 2.0, &attrs);
  SetAttr(matmul, "alpha", 3.0, &attrs);
  op.attrs = program.Intern(attrs);
  EXPECT_EQ(AttrAs<double>(op, "alpha"), 3.0);
  EXPECT_TRUE(AttrAs<bool>(op, "trans_x"));
  ASSERT_EQ(op.attrs.size(), 3);
  EXPECT_EQ(op.attrs[0].first, 0);  // sorted
  EXPECT_EQ(op.attrs[2].first, 3);
  EXPECT_EQ(*FindSetAttr(op.attrs, 1), AttrValue(3.0));
  EXPECT_EQ(FindSetAttr(op.attrs, 2), nullptr);
  EXPECT_DEATH(GetAttr(op, "beta"), "matmul has no attribute beta");
  EXPECT_DEATH(SetAttr(matmul, "alpha", true, &attrs),
               "no such attribute of that kind");
}

TEST(OpSchemaTest, AmpClassByAttribute) {
  Program program;
  Op op;
  op.schema = Ops().Find("matmul");
  EXPECT_EQ(op.schema->amp(), AmpClass::kWhite);
  EXPECT_EQ(op.schema->amp(op), AmpClass::kWhite);
  AttrList attrs;
  SetAttr(*op.schema, "mode", std::string("fancy"), &attrs);
  op.attrs = program.Intern(attrs);
  EXPECT_EQ(op.schema->amp(op), AmpClass::kBlack);
  EXPECT_EQ(Name(AmpClass::kClear), "clear");
}

TEST(OpRegistryTest, FindsNamesAndAliases) {
  const OpRegistry& ops = Ops();
  EXPECT_EQ(ops.Find("matmul_v2"), ops.Find("matmul"));
  EXPECT_EQ(ops.Find("matmul_v3"), nullptr);
  EXPECT_THAT(ops.Names(),
              ElementsAre("cast", "fill", "fusion", "like", "matmul", "open",
                          "relayout", "sum", "update"));
  EXPECT_EQ(ops.All()[4]->name(), "matmul");
  EXPECT_EQ(ops.Aliases().size(), 1);
  EXPECT_EQ(ops.Aliases()[0].first, "matmul_v2");
}

TEST(OpRegistryDeathTest, RefusesIncompleteAndDoubleOps) {
  OpRegistry registry;
  EXPECT_DEATH(registry.Add(OpSchema("bare")), "op bare: no Doc");
  OpSchema schema("op");
  Complete(schema.Out("Out", "f32", "out"));
  registry.Add(schema);
  EXPECT_DEATH(registry.Add(schema), "registered twice: op");
  EXPECT_DEATH(registry.AddAlias("op", "op"), "registered twice: op");
  EXPECT_DEATH(registry.AddAlias("x", "y"), "alias of an unknown op: y");
}

}  // namespace
}  // namespace halftone

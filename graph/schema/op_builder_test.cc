#include "graph/schema/op_builder.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/test_ops.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

class OpBuilderTest : public SchemaTest {
 protected:
  OpBuilder Matmul() {
    OpBuilder builder(&block_, "matmul");
    builder.In("X", x_).In("Y", y_).Line(12);
    return builder;
  }
  std::string ErrorOf(OpBuilder& builder) {
    const int ops = block_.num_ops();
    const absl::StatusOr<OpId> built = builder.Build();
    EXPECT_EQ(block_.num_ops(), ops + (built.ok() ? 1 : 0));
    if (built.ok()) return "ok";
    EXPECT_EQ(ExitCodeOf(built.status()), ExitCode::kModel);
    return Message(built.status());
  }
  std::string ErrorOf(OpBuilder&& builder) { return ErrorOf(builder); }

  ValueId x_ = Feed("x", DType::kF16, {batch_, 4});
  ValueId y_ = Feed("y", DType::kF16, {4, 3});
  ValueId f_ = Feed("f", DType::kF32, {4, 3});
  ValueId i_ = Feed("i", DType::kI64, {4, 3});
};

TEST_F(OpBuilderTest, BuildsAnOp) {
  Decision decision;
  decision.reason = Reason::kWhiteList;
  const NameId origin = program_.InternName("fc");
  const OpId id = *Matmul()
                       .Attr("alpha", 2.0)
                       .Attr("trans_x", true)
                       .Attr("alpha", 3.0)
                       .Out("Out", "h")
                       .Role(Role::kBackward)
                       .Why(decision)
                       .Origin(origin)
                       .Build();
  const Op& op = block_.op(id);
  EXPECT_EQ(block_.name(op), "h");
  EXPECT_EQ(op.schema, Ops().Find("matmul"));
  EXPECT_EQ(op.in(0), x_);
  EXPECT_EQ(op.in(1), y_);
  EXPECT_FALSE(op.inputs.has(2));
  EXPECT_EQ(Text("h"), "f16[B,3]");
  EXPECT_FALSE(op.outputs.has(1));
  EXPECT_EQ(op.role, Role::kBackward);
  EXPECT_EQ(op.decision.reason, Reason::kWhiteList);
  EXPECT_THAT(op.origins, ElementsAre(origin));
  EXPECT_EQ(op.line, 12);
  EXPECT_EQ(AttrAs<double>(op, "alpha"), 3.0);
  EXPECT_TRUE(AttrAs<bool>(op, "trans_x"));
}

TEST_F(OpBuilderTest, SlotsInAnyOrder) {
  const ValueId bias = Feed("bias", DType::kF16, {3});
  const OpId id = *OpBuilder(&block_, "matmul")
                       .In("Bias", bias)
                       .In("X", x_)
                       .In("Y", y_)
                       .Out("Out", "h")
                       .Build();
  EXPECT_THAT(block_.op(id).inputs.all(), ElementsAre(x_, y_, bias));
  const OpId list =
      *OpBuilder(&block_, "sum").In("X", {y_, x_}).In("X", y_).Build();
  EXPECT_THAT(block_.op(list).inputs.all(), ElementsAre(y_, x_, y_));
}

TEST_F(OpBuilderTest, AliasesAndPositions) {
  const OpId first = *Matmul().Out("Out", "a").Build();
  OpBuilder builder(&block_, "matmul_v2");
  const OpId second =
      *builder.In("X", {x_}).In("Y", y_).At(Block::Before(first)).Build();
  EXPECT_EQ(block_.first(), second);
  EXPECT_EQ(block_.name(block_.op(second)), "matmul");
  EXPECT_EQ(block_.op(second).out(0), block_.FindValue("matmul.Out"));
}

TEST_F(OpBuilderTest, NamesOfOutputs) {
  const OpId fc = *Matmul().Name("fc").Out("Rows", "r").Build();
  EXPECT_EQ(block_.name(block_.op(fc)), "fc");
  EXPECT_TRUE(block_.FindValue("fc.Out").valid());
  EXPECT_EQ(Text("r"), "f16[B]");
  const OpId again = *Matmul().Name("fc").Build();
  EXPECT_EQ(block_.name(block_.op(again)), "fc.1");
  EXPECT_EQ(block_.op(again).out(0), block_.FindValue("fc.1.Out"));
  // FirstOut yields to a name given before.
  EXPECT_TRUE(Matmul().FirstOut("g").Build().ok());
  EXPECT_TRUE(block_.FindValue("g").valid());
  EXPECT_TRUE(Matmul().Out("Out", "k").FirstOut("l").Build().ok());
  EXPECT_FALSE(block_.FindValue("l").valid());
}

TEST_F(OpBuilderTest, TwoDefinitions) {
  ASSERT_TRUE(Matmul().Name("fc").Out("Out", "h").Build().ok());
  EXPECT_EQ(ErrorOf(Matmul().Name("b").Out("Out", "h").Line(14)),
            "m.pbtxt:14: b (matmul): slot Out: two definitions of h; the "
            "other is op fc in line 12; rename one");
  EXPECT_EQ(ErrorOf(Matmul().Name("b").Out("Out", "x")),
            "m.pbtxt:12: b (matmul): slot Out: two definitions of x; the "
            "other is a feed, cell or constant; rename one");
  EXPECT_EQ(ErrorOf(Matmul().Name("b").Out("Out", "p").Out("Rows", "p")),
            "m.pbtxt:12: b (matmul): slot Rows: two definitions of p; the "
            "other is in this op; rename one");
  const OpId id = *Matmul().Out("Out", "h").Out("Rows", "h").Unique().Build();
  EXPECT_EQ(block_.name(block_.op(id).out(0)), "h.1");
  EXPECT_EQ(block_.name(block_.op(id).out(1)), "h.2");
  EXPECT_EQ(block_.name(block_.op(id)), "h.1");
}

TEST_F(OpBuilderTest, UnknownNamesGetTheNearest) {
  EXPECT_EQ(ErrorOf(OpBuilder(&block_, "matmull").Out("Out", "h").Line(3)),
            "m.pbtxt:3: h (matmull): unknown op matmull; nearest: matmul");
  EXPECT_EQ(ErrorOf(Matmul().Name("a").In("Bais", x_)),
            "m.pbtxt:12: a (matmul): no input slot Bais; nearest: Bias");
  EXPECT_EQ(ErrorOf(Matmul().Name("a").Out("Outt", "h")),
            "m.pbtxt:12: a (matmul): no output slot Outt; nearest: Out");
  EXPECT_EQ(ErrorOf(Matmul().Name("a").Attr("tran_x", true)),
            "m.pbtxt:12: a (matmul): no attribute tran_x; nearest: trans_x; "
            "expected one of trans_x alpha axes mode");
  EXPECT_EQ(ErrorOf(Matmul().Name("a").Bind("Tout", DType::kF16)),
            "m.pbtxt:12: a (matmul): no type variable Tout; nearest: TOut");
}

TEST_F(OpBuilderTest, PlacesWithoutFileOrLine) {
  OpBuilder builder(&block_, "no_such_op");
  EXPECT_EQ(ErrorOf(builder), "m.pbtxt: no_such_op: unknown op no_such_op");
  program_.file = "";
  EXPECT_EQ(ErrorOf(builder), "no_such_op: unknown op no_such_op");
  EXPECT_EQ(ErrorOf(builder.Line(3)),
            "line 3: no_such_op: unknown op no_such_op");
}

TEST_F(OpBuilderTest, Arity) {
  OpBuilder one(&block_, "matmul");
  EXPECT_EQ(ErrorOf(one.Name("a").In("X", x_)),
            "m.pbtxt: a (matmul): slot Y: expected one value, found nothing; "
            "give it ([K,N])");
  EXPECT_EQ(ErrorOf(Matmul().Name("a").In("X", x_)),
            "m.pbtxt:12: a (matmul): slot X: expected one value, found 2; "
            "this slot is no list");
  EXPECT_EQ(ErrorOf(Matmul().Name("a").Out("Out", "h").Out("Out", "i")),
            "m.pbtxt:12: a (matmul): slot Out: expected one name, found 2; "
            "this slot is no list");
  // An invalid value leaves an optional slot absent.
  EXPECT_EQ(ErrorOf(Matmul().In("Bias", ValueId())), "ok");
  // Lists take any number.
  OpBuilder sum(&block_, "sum");
  EXPECT_EQ(
      ErrorOf(
          sum.In("X", {x_, y_}).In("X", x_).Out("Out", "p").Out("Out", "q")),
      "ok");
  EXPECT_EQ(block_.op(block_.last()).inputs.all().size(), 3);
  EXPECT_EQ(Text("q"), "f16[4,3]");
}

TEST_F(OpBuilderTest, AttributeKinds) {
  EXPECT_EQ(ErrorOf(Matmul().Name("a").Attr("alpha", "fast")),
            "m.pbtxt:12: a (matmul): attribute alpha: expected float, found "
            "string; write it as float");
  const OpId id = *Matmul()
                       .Attr("alpha", int64_t{2})
                       .Attr("trans_x", int64_t{1})
                       .Attr("axes", int64_t{7})
                       .Build();
  EXPECT_EQ(AttrAs<double>(block_.op(id), "alpha"), 2.0);
  EXPECT_TRUE(AttrAs<bool>(block_.op(id), "trans_x"));
  EXPECT_THAT(AttrAs<std::vector<int64_t>>(block_.op(id), "axes"),
              ElementsAre(7));
  EXPECT_EQ(ErrorOf(OpBuilder(&block_, "cast").Name("c").In("X", x_)),
            "m.pbtxt: c (cast): attribute to: expected dtype, found nothing; "
            "give it (type of Out)");
}

TEST_F(OpBuilderTest, AttrsOf) {
  const OpId from = *Matmul().Attr("alpha", 2.0).Attr("mode", "x").Build();
  const OpId to = *Matmul().AttrsOf(block_.op(from)).Build();
  EXPECT_EQ(block_.op(to).attrs, block_.op(from).attrs);
  const OpId other =
      *OpBuilder(&block_, "like").In("X", x_).AttrsOf(block_.op(to)).Build();
  EXPECT_TRUE(block_.op(other).attrs.empty());
}

TEST_F(OpBuilderTest, DTypesOfInputs) {
  OpBuilder mixed(&block_, "matmul");
  EXPECT_EQ(ErrorOf(mixed.Name("a").In("X", x_).In("Y", f_)),
            "m.pbtxt: a (matmul): slot Y: expected f16 as slot X, found "
            "f32[4,3]; cast it first");
  OpBuilder integer(&block_, "matmul");
  EXPECT_EQ(ErrorOf(integer.Name("a").In("X", i_).In("Y", i_)),
            "m.pbtxt: a (matmul): slot X: expected f32, f16, bf16, found "
            "i64[4,3]; cast it first");
  OpBuilder fixed(&block_, "update");
  EXPECT_EQ(ErrorOf(fixed.Name("a").In("X", x_).In("FoundInf", x_)),
            "m.pbtxt: a (update): slot X: expected f32, found f16[B,4]; cast "
            "it first");
  // A shape-only slot may have any dtype and binds nothing.
  OpBuilder like(&block_, "like");
  EXPECT_EQ(ErrorOf(like.In("X", x_).In("Of", i_).Out("Out", "l")), "ok");
  EXPECT_EQ(Text("l"), "f16[B,4]");
}

TEST_F(OpBuilderTest, DTypesOfOutputs) {
  ASSERT_TRUE(Matmul().Bind("TOut", DType::kF32).Out("Out", "a").Build().ok());
  EXPECT_EQ(Text("a"), "f32[B,3]");
  ASSERT_TRUE(Matmul().Bind("Out", DType::kBF16).Out("Out", "b").Build().ok());
  EXPECT_EQ(Text("b"), "bf16[B,3]");
  EXPECT_EQ(ErrorOf(Matmul().Name("c").Bind("T", DType::kF32)),
            "m.pbtxt:12: c (matmul): dtype of T: expected f16 as slot X, "
            "found f32");
  EXPECT_EQ(ErrorOf(Matmul().Name("c").Bind("TOut", DType::kI32)),
            "m.pbtxt:12: c (matmul): dtype of TOut: expected f32, f16, bf16, "
            "found i32");
  EXPECT_EQ(ErrorOf(OpBuilder(&block_, "open").Name("c")),
            "m.pbtxt: c (open): slot Out: expected a dtype for T, found "
            "none; bind T");
  EXPECT_EQ(ErrorOf(OpBuilder(&block_, "open").Bind("T", DType::kF16)), "ok");
}

TEST_F(OpBuilderTest, DTypesFromAttributes) {
  ASSERT_TRUE(OpBuilder(&block_, "cast")
                  .In("X", x_)
                  .Attr("to", DType::kI32)
                  .Out("Out", "a")
                  .Build()
                  .ok());
  EXPECT_EQ(Text("a"), "i32[B,4]");
  ASSERT_TRUE(OpBuilder(&block_, "fill").Out("Out", "b").Build().ok());
  EXPECT_EQ(Text("b"), "f32[2,2]");
  OpBuilder low(&block_, "fill");
  ASSERT_TRUE(low.Attr("dtype", "bf16").Out("Out", "c").Build().ok());
  EXPECT_EQ(Text("c"), "bf16[2,2]");
  OpBuilder both(&block_, "cast");
  EXPECT_EQ(ErrorOf(both.Name("d")
                        .In("X", x_)
                        .Attr("to", DType::kI32)
                        .Bind("TOut", DType::kI64)),
            "m.pbtxt: d (cast): attribute to: expected i64 as the dtype asked "
            "for TOut, found i32");
  OpBuilder integer(&block_, "fill");
  EXPECT_EQ(ErrorOf(integer.Name("d").Attr("dtype", DType::kI64)),
            "m.pbtxt: d (fill): attribute dtype: expected f32, f16, bf16, "
            "found i64");
}

TEST_F(OpBuilderTest, InferErrorsNameThePlace) {
  OpBuilder builder(&block_, "matmul");
  EXPECT_EQ(ErrorOf(builder.Name("a").In("X", x_).In("Y", x_).Line(9)),
            "m.pbtxt:9: a (matmul): slot Y: expected [K,N] with X's K, found "
            "f16[B,4]");
}

TEST_F(OpBuilderTest, Sizes) {
  OpBuilder negative(&block_, "fill");
  EXPECT_EQ(ErrorOf(negative.Name("a").Attr("by", int64_t{-1})),
            "m.pbtxt: a (fill): slot Out: expected dims of 0 and more and "
            "fewer than 2^63 elements, found f32[-1,-1]");
  OpBuilder huge(&block_, "fill");
  EXPECT_EQ(ErrorOf(huge.Name("a").Attr("by", int64_t{1} << 40)),
            "m.pbtxt: a (fill): slot Out: expected dims of 0 and more and "
            "fewer than 2^63 elements, found f32[1099511627776,"
            "1099511627776]");
  OpBuilder empty(&block_, "fill");
  EXPECT_EQ(ErrorOf(empty.Attr("by", int64_t{0})), "ok");
}

TEST_F(OpBuilderTest, ImplicitInputs) {
  const ValueId bad = Feed("bad", DType::kBool, {});
  const auto update = [&] {
    OpBuilder builder(&block_, "update");
    builder.In("X", f_).In("FoundInf", bad);
    return builder;
  };
  const OpId id = *update().Build();
  EXPECT_EQ(block_.op(id).in(2), block_.FindValue("@seed"));
  EXPECT_EQ(block_.op(id).in(3), block_.FindValue("@applied"));
  const ValueId own = Feed("own", DType::kI64, {});
  const OpId given = *update().In("Seed", own).Build();
  EXPECT_EQ(block_.op(given).in(2), own);
  const OpId again = *update().Build();
  EXPECT_EQ(block_.op(again).in(2), block_.FindValue("@seed"));
}

TEST_F(OpBuilderTest, MixedLists) {
  OpBuilder builder(&block_, "fusion");
  ASSERT_TRUE(builder.In("X", {x_, f_, i_})
                  .Out("Out", program_.InternName("p"),
                       program_.Intern(MakeType(DType::kF32, {7})))
                  .Out("Out", program_.InternName("q"),
                       program_.Intern(MakeType(DType::kU8, {})))
                  .Build()
                  .ok());
  EXPECT_EQ(Text("p"), "f32[7]");
  EXPECT_EQ(Text("q"), "u8[]");
  OpBuilder untyped(&block_, "fusion");
  const absl::Status status =
      untyped.Name("a").In("X", {x_}).Out("Out", "r").Build().status();
  EXPECT_EQ(Message(status),
            "m.pbtxt: a (fusion): slot Out: expected a type for each of 1 "
            "values, found 0");
}

TEST_F(OpBuilderTest, LayoutsFollow) {
  const Dims dims = {batch_, 8, 4, 4};
  const ValueId last = Feed("last", DType::kF16, dims, Layout::kChannelsLast);
  const ValueId row = Feed("row", DType::kF16, dims);
  ASSERT_TRUE(
      OpBuilder(&block_, "like").In("X", last).Out("Out", "a").Build().ok());
  EXPECT_EQ(Text("a"), "f16[B,8,4,4] @channels_last");
  OpBuilder lists(&block_, "sum");
  ASSERT_TRUE(lists.In("X", {row, last, x_})
                  .Out("Out", "p")
                  .Out("Out", "q")
                  .Out("Out", "r")
                  .Build()
                  .ok());
  EXPECT_EQ(TypeOf("p").layout, Layout::kRowMajor);
  EXPECT_EQ(TypeOf("q").layout, Layout::kChannelsLast);
  EXPECT_EQ(TypeOf("r").layout, Layout::kRowMajor);
  OpBuilder relayout(&block_, "relayout");
  ASSERT_TRUE(relayout.In("X", row).Out("Out", "s").Build().ok());
  EXPECT_EQ(TypeOf("s").layout, Layout::kChannelsLast);
}

TEST_F(OpBuilderTest, ForeignValuesAreOurBugs) {
  OpBuilder builder(&block_, "like");
  const absl::Status status = builder.In("X", ValueId(1000)).Build().status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCompilerBug);
  OpBuilder list(&block_, "sum");
  EXPECT_EQ(ExitCodeOf(list.In("X", {x_, ValueId()}).Build().status()),
            ExitCode::kCompilerBug);
}

}  // namespace
}  // namespace halftone

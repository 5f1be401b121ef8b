// TypeBinding and CheckTypes of op_builder.h.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/test_ops.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

class CheckTypesTest : public SchemaTest {
 protected:
  const Op& Matmul() {
    return block_.op(*OpBuilder(&block_, "matmul")
                          .In("X", x_)
                          .In("Y", y_)
                          .Bind("TOut", DType::kF32)
                          .Out("Out", "h")
                          .Line(5)
                          .Build());
  }
  std::string ErrorOf(const Op& op) {
    const absl::Status status = CheckTypes(block_, op);
    return status.ok() ? "ok" : Message(status);
  }
  void Retype(absl::string_view value, DType dtype, Dims dims,
              Layout layout = Layout::kRowMajor) {
    block_.SetType(block_.FindValue(value), MakeType(dtype, dims, layout));
  }

  ValueId x_ = Feed("x", DType::kF16, {batch_, 4});
  ValueId y_ = Feed("y", DType::kF16, {4, 3});
};

TEST_F(CheckTypesTest, TypeBindingIsTheKernelKey) {
  EXPECT_THAT(TypeBinding(block_, Matmul()),
              ElementsAre(DType::kF16, DType::kF32));
  const OpId empty = *OpBuilder(&block_, "sum").Build();
  EXPECT_THAT(TypeBinding(block_, block_.op(empty)),
              ElementsAre(DType::kInvalid));
  const ValueId i = Feed("i", DType::kI64, {});
  const OpId like = *OpBuilder(&block_, "like").In("X", x_).In("Of", i).Build();
  EXPECT_THAT(TypeBinding(block_, block_.op(like)), ElementsAre(DType::kF16));
}

TEST_F(CheckTypesTest, WhatTheBuilderMakesIsRight) {
  EXPECT_EQ(ErrorOf(Matmul()), "ok");
  const OpId cast =
      *OpBuilder(&block_, "cast").In("X", x_).Attr("to", "i32").Build();
  EXPECT_EQ(ErrorOf(block_.op(cast)), "ok");
  const OpId fusion = *OpBuilder(&block_, "fusion")
                           .In("X", {x_})
                           .Out("Out", program_.InternName("f"),
                                program_.Intern(MakeType(DType::kU8, {3})))
                           .Build();
  EXPECT_EQ(ErrorOf(block_.op(fusion)), "ok");
  EXPECT_EQ(ErrorOf(block_.op(*OpBuilder(&block_, "sum").Build())), "ok");
}

TEST_F(CheckTypesTest, FreeVariablesComeFromTheOutputs) {
  const Op& op = Matmul();
  Retype("h", DType::kBF16, {batch_, 3});
  EXPECT_EQ(ErrorOf(op), "ok");
  Retype("h", DType::kI32, {batch_, 3});
  EXPECT_EQ(ErrorOf(op),
            "m.pbtxt:5: h (matmul): slot Out: expected f16[B,3], found "
            "i32[B,3]");
}

TEST_F(CheckTypesTest, DifferencesAreNamed) {
  const Op& op = Matmul();
  Retype("h", DType::kF32, {batch_, 4});
  EXPECT_EQ(ErrorOf(op),
            "m.pbtxt:5: h (matmul): slot Out: expected f32[B,3], found "
            "f32[B,4]");
  Retype("h", DType::kF32, {batch_, 3});
  Retype("y", DType::kF32, {4, 3});
  EXPECT_EQ(ErrorOf(op),
            "m.pbtxt:5: h (matmul): slot Y: expected f16 as slot X, found "
            "f32[4,3]; cast it first");
  Retype("y", DType::kF16, {5, 3});
  EXPECT_EQ(ErrorOf(op),
            "m.pbtxt:5: h (matmul): slot Y: expected [K,N] with X's K, found "
            "f16[5,3]");
}

TEST_F(CheckTypesTest, TheAttributeDecidesACastsOutput) {
  const OpId cast = *OpBuilder(&block_, "cast")
                         .In("X", x_)
                         .Attr("to", DType::kF32)
                         .Out("Out", "c")
                         .Build();
  Retype("c", DType::kBF16, {batch_, 4});
  EXPECT_EQ(ErrorOf(block_.op(cast)),
            "m.pbtxt: c (cast): slot Out: expected f32[B,4], found "
            "bf16[B,4]");
}

TEST_F(CheckTypesTest, ArityAndAttributes) {
  const OpSchema* matmul = Ops().Find("matmul");
  const Block::OutputSpec out = {
      program_.InternName("o"),
      program_.Intern(MakeType(DType::kF16, {batch_, 3}))};
  const OpId slots = block_.AddOp(matmul, program_.InternName("a"), {{x_}},
                                  {{out}, {}}, {}, Block::End());
  EXPECT_EQ(ErrorOf(block_.op(slots)),
            "m.pbtxt: a (matmul): expected 3 slots, found 1");
  const OpId none = block_.AddOp(matmul, program_.InternName("b"),
                                 {{x_}, {}, {}}, {{}, {}}, {}, Block::End());
  EXPECT_EQ(ErrorOf(block_.op(none)),
            "m.pbtxt: b (matmul): slot Y: expected one value, found nothing; "
            "give it ([K,N])");
  block_.SetInputSlot(none, 1, {y_});
  EXPECT_EQ(ErrorOf(block_.op(none)),
            "m.pbtxt: b (matmul): slot Out: expected one value, found "
            "nothing; give it ([M,N])");
  block_.AddOutput(none, 0, "p", program_.type(out.type));
  EXPECT_EQ(ErrorOf(block_.op(none)), "ok");
  block_.mutable_op(none).attrs = program_.Intern({{1, AttrValue(true)}});
  EXPECT_EQ(ErrorOf(block_.op(none)),
            "m.pbtxt: b (matmul): attribute alpha: expected float, found "
            "bool");
  const OpId cast = *OpBuilder(&block_, "cast")
                         .In("X", x_)
                         .Attr("to", DType::kF32)
                         .Out("Out", "c")
                         .Build();
  block_.mutable_op(cast).attrs = Attrs();
  EXPECT_EQ(ErrorOf(block_.op(cast)),
            "m.pbtxt: c (cast): attribute to: expected dtype, found nothing; "
            "give it (type of Out)");
  block_.mutable_op(cast).attrs = program_.Intern({{9, AttrValue(true)}});
  EXPECT_EQ(ErrorOf(block_.op(cast)),
            "m.pbtxt: c (cast): expected 1 attributes, found one with index "
            "9");
}

TEST_F(CheckTypesTest, Layouts) {
  const Dims dims = {batch_, 8, 4, 4};
  const ValueId last = Feed("last", DType::kF16, dims, Layout::kChannelsLast);
  Feed("row", DType::kF16, dims);
  const Op& like = block_.op(
      *OpBuilder(&block_, "like").In("X", last).Out("Out", "l").Build());
  EXPECT_EQ(ErrorOf(like), "ok");
  Retype("l", DType::kF16, dims);
  EXPECT_EQ(ErrorOf(like),
            "m.pbtxt: l (like): slot Out: expected channels_last as the other "
            "operands, found f16[B,8,4,4]");
  const Op& relayout = block_.op(
      *OpBuilder(&block_, "relayout").In("X", last).Out("Out", "r").Build());
  EXPECT_EQ(ErrorOf(relayout), "ok");
  Retype("r", DType::kF16, dims);
  EXPECT_EQ(ErrorOf(relayout),
            "m.pbtxt: r (relayout): slot Out: expected f16[B,8,4,4] "
            "@channels_last, found f16[B,8,4,4]");
  const Op& matmul = Matmul();
  Retype("x", DType::kF16, {batch_, 4}, Layout::kChannelsLast);
  EXPECT_EQ(ErrorOf(matmul),
            "m.pbtxt:5: h (matmul): slot X: expected row_major, found "
            "f16[B,4] @channels_last");
}

}  // namespace
}  // namespace halftone

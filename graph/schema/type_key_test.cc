// KindOf: what is kept of an op's kind follows its edits.
#include "graph/schema/type_key.h"

#include <memory>

#include "graph/base/dtype.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/test_ops.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

class KindOfTest : public SchemaTest {
 protected:
  OpId Cast(absl::string_view to) {
    return *OpBuilder(&block_, "cast")
                .In("X", x_)
                .Attr("to", std::string(to))
                .Build();
  }
  // Whether what is kept is what would be found anew.
  bool IsFresh(OpId op) {
    return KindOf(block_, op) == TypeKey(block_, block_.op(op)).value();
  }

  ValueId x_ = Feed("x", DType::kF16, {batch_, 4});
  ValueId y_ = Feed("y", DType::kF32, {4});
};

TEST_F(KindOfTest, OpsOfAKindHaveOne) {
  const OpId a = Cast("i32"), b = Cast("i32"), c = Cast("f32");
  EXPECT_EQ(KindOf(block_, a), KindOf(block_, b));
  EXPECT_NE(KindOf(block_, a), KindOf(block_, c));
  EXPECT_EQ(block_.kind(a), KindOf(block_, a));
}

TEST_F(KindOfTest, StreamsTellNoKindsApart) {
  const auto fill = [&](int64_t by, int64_t stream) {
    OpBuilder builder(&block_, "fill");
    builder.Attr("by", by).Unique();
    if (stream != 0) builder.Attr("stream", stream);
    const OpId id = *builder.Build();
    EXPECT_EQ(block_.type(block_.op(id).out(0)).dims[0], Dim(by));
    return KindOf(block_, id);
  };
  EXPECT_EQ(fill(3, 1), fill(3, 2));
  EXPECT_EQ(fill(3, 1), fill(3, 0));
  EXPECT_NE(fill(3, 1), fill(4, 1));
  // What is no stream passes for none.
  const OpId broken = *OpBuilder(&block_, "fill").Unique().Build();
  const uint64_t whole = KindOf(block_, broken);
  const int stream = block_.op(broken).schema->stream_attr();
  block_.mutable_op(broken).attrs =
      program_.Intern({{static_cast<int16_t>(stream), std::string("one")}});
  EXPECT_NE(KindOf(block_, broken), whole);
}

TEST_F(KindOfTest, EditsMakeItAnew) {
  const OpId cast = Cast("i32");
  const uint64_t first = KindOf(block_, cast);
  block_.SetInput(cast, 0, y_);
  const uint64_t other_input = KindOf(block_, cast);
  EXPECT_NE(other_input, first);
  block_.SetType(y_, MakeType(DType::kF16, {4}));
  const uint64_t other_type = KindOf(block_, cast);
  EXPECT_NE(other_type, other_input);
  block_.SetType(block_.op(cast).out(0), MakeType(DType::kI64, {4}));
  EXPECT_NE(KindOf(block_, cast), other_type);
  EXPECT_TRUE(IsFresh(cast));
  block_.ReplaceUses(y_, x_);
  EXPECT_TRUE(IsFresh(cast));
  block_.mutable_op(cast).attrs = Attrs();
  EXPECT_TRUE(IsFresh(cast));
}

TEST_F(KindOfTest, EditsOfThePlaceKeepIt) {
  const OpId other = Cast("i32"), cast = Cast("i32");
  const uint64_t first = KindOf(block_, cast);
  const uint64_t edit = block_.edit(cast);
  block_.MoveOp(cast, Block::Before(other));
  block_.SetInput(cast, 0, Feed("z", DType::kF16, {batch_, 4}));
  EXPECT_EQ(block_.kind(cast), first);
  EXPECT_GT(block_.edit(cast), edit);
  EXPECT_TRUE(IsFresh(cast));
}

TEST_F(KindOfTest, ABodyIsPartOfIt) {
  const auto fuse = [&] {
    const OpId fusion =
        *OpBuilder(&block_, "fusion")
             .In("X", {x_})
             .Out("Out", program_.InternName("f"), block_.type_id(x_))
             .Unique()
             .Build();
    block_.mutable_op(fusion).body = std::make_unique<Block>(&program_);
    return fusion;
  };
  const OpId a = fuse(), b = fuse();
  EXPECT_EQ(KindOf(block_, a), KindOf(block_, b));
  block_.mutable_op(b).body->AddFeed("z", MakeType(DType::kF16, {4}));
  EXPECT_NE(KindOf(block_, a), KindOf(block_, b));
  EXPECT_TRUE(IsFresh(b));
}

}  // namespace
}  // namespace halftone

// Equal ops whose inputs have few readers and many.
#include "passes/lower/share_equal.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "gtest/gtest.h"

namespace halftone {
namespace passes {
namespace {

// More than are asked one by one.
constexpr int kMany = 40;

class ShareEqualTest : public ::testing::Test {
 protected:
  ShareEqualTest() : entry_(program_.AddEntry("train")) {
    TensorType type;
    type.dtype = DType::kF32;
    type.dims = {4};
    x_ = block().AddFeed("x", type);
  }
  Block& block() { return entry_.block(); }
  ValueId Add(OpBuilder& builder) {
    const absl::StatusOr<OpId> op =
        builder.FirstOut(absl::StrCat("v", block().op_limit())).Build();
    HT_CHECK(op.ok(), op.status().ToString().c_str());
    return block().op(*op).out(0);
  }
  ValueId Relu(ValueId x) {
    return Add(OpBuilder(&block(), "relu").In("X", x));
  }
  // Somebody reads it, so that it stays.
  void Scale(ValueId x, double by) {
    const ValueId scaled =
        Add(OpBuilder(&block(), "scale").In("X", x).Attr("scale", by));
    entry_.results().push_back({absl::StrCat("r", scaled.index()), scaled});
  }
  bool Share(uint64_t since = 0) {
    HeldValues held(entry_);
    return ShareEqualOps(block(), held, since);
  }
  int CountOf(absl::string_view op) { return block().CountOf(Ops().Find(op)); }

  Program program_;
  Entry& entry_;
  ValueId x_;
};

TEST_F(ShareEqualTest, FewReaders) {
  Scale(Relu(x_), 1);
  Scale(Relu(x_), 1);
  Scale(Relu(x_), 2);
  EXPECT_TRUE(Share());
  EXPECT_EQ(CountOf("relu"), 1);
  EXPECT_EQ(CountOf("scale"), 2);
  EXPECT_EQ(entry_.results()[0].value, entry_.results()[1].value);
  EXPECT_FALSE(Share());
}

// Ops that read in another place, with other attributes or of another type are
// not equal.
TEST_F(ShareEqualTest, OnlyEqualOnes) {
  const ValueId y = Relu(x_);
  Add(OpBuilder(&block(), "elementwise_sub").In("X", x_).In("Y", y));
  Add(OpBuilder(&block(), "elementwise_sub").In("X", y).In("Y", x_));
  Add(OpBuilder(&block(), "cast").In("X", y).Attr("to", DType::kF16));
  Add(OpBuilder(&block(), "cast").In("X", y).Attr("to", DType::kBF16));
  EXPECT_FALSE(Share());
}

TEST_F(ShareEqualTest, ManyReaders) {
  for (int i = 0; i < kMany; ++i) Scale(x_, i % 2);
  EXPECT_TRUE(Share());
  EXPECT_EQ(CountOf("scale"), 2);
}

TEST_F(ShareEqualTest, FewAndManyReaders) {
  const ValueId y = Relu(x_);
  for (int i = 0; i < kMany; ++i) Scale(x_, i);
  EXPECT_FALSE(Share());
  for (int i = 0; i < 2; ++i) {
    Scale(Add(OpBuilder(&block(), "elementwise_sub").In("X", x_).In("Y", y)),
          i);
  }
  EXPECT_TRUE(Share());
  EXPECT_EQ(CountOf("elementwise_sub"), 1);
  EXPECT_EQ(CountOf("scale"), kMany + 2);
}

// A value comes to have many readers while ops are shared: what read it before
// is still found.
TEST_F(ShareEqualTest, FewReadersBecomeMany) {
  for (int i = 0; i < kMany; ++i) Scale(Relu(x_), i);
  for (int i = 0; i < kMany; ++i) Scale(Relu(x_), i);
  EXPECT_TRUE(Share());
  EXPECT_EQ(CountOf("relu"), 1);
  EXPECT_EQ(CountOf("scale"), kMany);
  EXPECT_FALSE(Share());
}

TEST_F(ShareEqualTest, OfWhatWasEdited) {
  Scale(x_, 1);
  Scale(x_, 2);
  EXPECT_FALSE(Share());
  const uint64_t since = program_.edit();
  EXPECT_FALSE(Share(since));
  Scale(x_, 2);
  EXPECT_TRUE(Share(since));
  EXPECT_EQ(CountOf("scale"), 2);
}

}  // namespace
}  // namespace passes
}  // namespace halftone

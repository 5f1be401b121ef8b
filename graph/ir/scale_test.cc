// A million ops are normal: bytes per op, and edits that do not slow down
// with the size of the program or the number of a value's readers. What is
// quadratic here runs for minutes: the test's time limit is the check.
#include <malloc.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ir/program.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr int kOps = kSanitized ? 100000 : 1000000;

int64_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

TensorType Scalar() {
  TensorType type;
  type.dtype = DType::kF32;
  return type;
}

// A chain of ops named "layer.<i>" with an output "layer.<i>.out", each of
// which also reads x.
void AddChain(Block& block, ValueId x, int n) {
  ValueId last = x;
  for (int i = 0; i < n; ++i) {
    const std::string name = absl::StrCat("layer.", i);
    const std::string out = name + ".out";
    Program& program = block.program();
    const OpId op =
        block.AddOp(nullptr, program.InternName(name), {{last}, {x}},
                    {{{program.InternName(out), program.Intern(Scalar())}}}, {},
                    Block::End());
    last = block.op(op).out(0);
  }
}

TEST(ScaleTest, AMillionOps) {
  const int64_t before = BytesInUse();
  Program program;
  Block& block = program.AddEntry("train").block();
  const ValueId x = block.AddFeed("x", Scalar());
  AddChain(block, x, kOps);
  const double per_op = static_cast<double>(BytesInUse() - before) / kOps;
  RecordProperty("bytes_per_op", absl::StrCat(per_op));
  if (!kSanitized) {
    EXPECT_LE(per_op, 380);
  }
  ASSERT_EQ(block.num_ops(), kOps);
  EXPECT_EQ(block.FindValue(absl::StrCat("layer.", kOps / 2, ".out")).index(),
            kOps / 2 + 1);

  // x has all ops as readers: move every second to y, one by one, in order.
  const ValueId y = block.AddFeed("y", Scalar());
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    if (id.index() % 2 == 1) block.SetInput(id, 1, y);
  }
  EXPECT_EQ(block.value(y).uses.size(), kOps / 2);
  block.ReplaceUses(y, x);
  // Erase all, last reader first.
  for (OpId id = block.last(); id.valid(); id = block.last()) {
    block.EraseOp(id);
  }
  EXPECT_TRUE(block.value(x).uses.empty());
}

TEST(ScaleTest, ManyOpsOfOneName) {
  Program program;
  Block& block = program.AddEntry("train").block();
  for (int i = 0; i < kOps / 5; ++i) {
    const NameId out = block.UniqueValueName(program.InternName("h"));
    block.AddOp(nullptr, program.InternName("relu"), {},
                {{{out, program.Intern(Scalar())}}}, {}, Block::End());
  }
  EXPECT_TRUE(block.FindOp(absl::StrCat("relu.", kOps / 5 - 1)).valid());
}

TEST(ScaleTest, SmallBodiesAreSmall) {
  Program program;
  const int64_t before = BytesInUse();
  std::vector<std::unique_ptr<Block>> bodies;
  for (int i = 0; i < 1000; ++i) {
    bodies.push_back(std::make_unique<Block>(&program));
    AddChain(*bodies.back(), bodies.back()->AddFeed("x", Scalar()), 3);
  }
  if (!kSanitized) {
    // Four ops' and eight values' worth of records beside the tables.
    EXPECT_LE((BytesInUse() - before) / 1000, 2200);
  }
}

}  // namespace
}  // namespace halftone

// Verification of what was edited since the last one.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "graph/text/text.h"
#include "graph/verify/test_program.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"

namespace halftone {

// Changes a record without counting as an edit.
class BlockDamage {
 public:
  static Op& OpOf(Block& block, absl::string_view name) {
    return block.ops_[block.FindOp(name).index()];
  }
  static Block::UseIndices& UseIndicesOf(Block& block, absl::string_view name) {
    return block.use_indices_[block.FindOp(name).index()];
  }
};

namespace {

using ::testing::HasSubstr;

using Edit = void (*)(Program&, Block&);
struct Case {
  Edit edit;
  const char* says;  // empty: nothing
};

// The body of the good program's fusion, which is edited by that.
Block& BodyOf(Block& b) { return *b.mutable_op(b.FindOp("fused")).body; }

class EditedTest : public ::testing::TestWithParam<Case> {};

std::string MessageOf(const Program& program, Phase phase, VerifyMemo* memo) {
  return std::string(Verify(program, {phase, memo}).message());
}

TEST_P(EditedTest, IsLookedAtAgain) {
  const auto program = Parse(kGoodProgram, "g.ht").value();
  VerifyMemo memo;
  ASSERT_EQ(MessageOf(*program, Phase::kLowered, &memo), "");
  GetParam().edit(*program, program->FindEntry(kTrainEntry)->block());
  const std::string says = GetParam().says;
  const std::string found = MessageOf(*program, Phase::kLowered, &memo);
  EXPECT_EQ(found, MessageOf(*program, Phase::kLowered, nullptr));
  EXPECT_THAT(found, HasSubstr(says));
  // What is wrong stays wrong, however often it is asked for.
  EXPECT_EQ(MessageOf(*program, Phase::kLowered, &memo), found);
}

INSTANTIATE_TEST_SUITE_P(
    Edits, EditedTest,
    ::testing::Values(
        Case{[](Program&, Block&) {}, ""},
        // Those that read it were not moved.
        Case{[](Program&, Block& b) { b.MoveOp(b.FindOp("ce"), Block::End()); },
             "it reads ce before its definition"},
        Case{[](Program&, Block& b) {
               b.SetType(b.FindValue("ce"), TensorType{DType::kF16});
             },
             "ce (softmax_with_cross_entropy): slot Loss: expected"},
        Case{[](Program&, Block& b) {
               b.SetInput(b.FindOp("loss"), 0, b.FindValue("label"));
             },
             "loss (mean): "},
        Case{[](Program&, Block& b) {
               b.RenameValue(b.FindValue("ce"), "a\nb");
             },
             "a value's name "},
        Case{[](Program& p, Block& b) {
               b.mutable_op(b.FindOp("tick")).attrs = p.Intern({{3, true}});
             },
             "attribute 3"},
        Case{[](Program&, Block& b) {
               b.mutable_op(b.FindOp("ce")).decision.reason = Reason::kNone;
             },
             "ce (softmax_with_cross_entropy): expected a precision"},
        Case{[](Program&, Block& b) { BodyOf(b).body_results().clear(); },
             "fused (fusion): body: expected 1 results, found 0"},
        // A body of another kind than the one that was right.
        Case{[](Program&, Block& b) {
               BodyOf(b).AddFeed("e", TensorType{DType::kF32});
             },
             "fused (fusion): body: expected 2 arguments, found 3"},
        Case{[](Program&, Block& b) {
               Block& body = BodyOf(b);
               body.SetType(body.FindValue("b"), TensorType{DType::kF16});
             },
             "fused (fusion): body: arguments: expected"},
        Case{[](Program&, Block& b) {
               Block& body = BodyOf(b);
               body.MoveOp(body.FindOp("c"), Block::End());
             },
             "it reads c before its definition"},
        Case{[](Program&, Block& b) {
               Block& body = BodyOf(b);
               body.SetInput(body.FindOp("d"), 0, body.FindValue("b"));
             },
             "fused (fusion): body: expected that of elementwise_chain"},
        Case{[](Program& p, Block& b) {
               const CellId cell = p.FindCell("@loss_scaling");
               BodyOf(b).CellValue(cell);
             },
             "expected arguments alone, found the cell or constant"},
        // Of the same kind.
        Case{[](Program&, Block& b) {
               Block& body = BodyOf(b);
               body.RenameValue(body.FindValue("c"), "a\nb");
             },
             "a value's name has control characters"},
        Case{[](Program&, Block& b) { BodyOf(b); }, ""}));

TEST(VerifyMemo, SparesWhatWasNotEdited) {
  const auto program = Parse(kGoodProgram, "g.ht").value();
  VerifyMemo memo;
  ASSERT_EQ(MessageOf(*program, Phase::kLowered, &memo), "");
  Block& block = program->FindEntry(kTrainEntry)->block();
  BlockDamage::OpOf(block, "ce").decision.reason = Reason::kNone;
  EXPECT_EQ(MessageOf(*program, Phase::kLowered, &memo), "");
  EXPECT_THAT(MessageOf(*program, Phase::kLowered, nullptr),
              HasSubstr("expected a precision"));
}

// Of an edited fusion's body the ids and use lists, which edits keep.
TEST(VerifyMemo, SparesBodiesOfAKindThatWasRight) {
  const auto program = Parse(kGoodProgram, "g.ht").value();
  VerifyMemo memo;
  ASSERT_EQ(MessageOf(*program, Phase::kLowered, &memo), "");
  Block& body = BodyOf(program->FindEntry(kTrainEntry)->block());
  BlockDamage::UseIndicesOf(body, "d")[0] = 7;
  EXPECT_EQ(MessageOf(*program, Phase::kLowered, &memo), "");
  EXPECT_THAT(MessageOf(*program, Phase::kLowered, nullptr),
              HasSubstr("the uses of c leave it out"));
}

// A kind that was kept, where all is looked at.
TEST(VerifyMemo, HoldsKindsToTheirOps) {
  const auto program = Parse(kGoodProgram, "g.ht").value();
  VerifyMemo memo;
  ASSERT_EQ(MessageOf(*program, Phase::kLowered, &memo), "");
  Block& block = program->FindEntry(kTrainEntry)->block();
  Op& doubled = block.mutable_op(block.FindOp("doubled"));
  ASSERT_EQ(MessageOf(*program, Phase::kLowered, &memo), "");
  EXPECT_EQ(MessageOf(*program, Phase::kLowered, nullptr), "");
  doubled.schema = Ops().Find("elementwise_add");
  EXPECT_EQ(MessageOf(*program, Phase::kLowered, &memo), "");
  EXPECT_THAT(MessageOf(*program, Phase::kLowered, nullptr),
              HasSubstr("doubled (elementwise_add): it was changed without an "
                        "edit"));
}

// What a later phase asks is asked of every op.
TEST(VerifyMemo, KnowsThePhase) {
  const auto program = Parse(kGoodProgram, "g.ht").value();
  program->outputs.clear();
  Block& block = program->FindEntry(kTrainEntry)->block();
  block.mutable_op(block.FindOp("ce")).decision.reason = Reason::kNone;
  VerifyMemo memo;
  ASSERT_EQ(MessageOf(*program, Phase::kSource, &memo), "");
  EXPECT_THAT(MessageOf(*program, Phase::kPrecision, &memo),
              HasSubstr("ce (softmax_with_cross_entropy): expected a "
                        "precision"));
}

}  // namespace
}  // namespace halftone

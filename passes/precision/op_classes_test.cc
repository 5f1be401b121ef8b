#include "passes/precision/op_classes.h"

#include <memory>
#include <string>

#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "passes/precision/assign_precision.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

constexpr char kProgram[] = R"(
program "p" dim B
loss loss over pool
entry train {
  feed x : f32[B,8,4,4]
  conv: relu(X=x) -> (Out=conv : f32[B,8,4,4])
  pool: pool2d(X=conv) -> (Out=pool : f32[B,8,2,2]) {pooling_type="avg", strides=[2, 2]}
  most: pool2d(X=conv) -> (Out=most : f32[B,8,2,2]) {strides=[2, 2]}
  flat: flatten(X=pool) -> (Out=flat : f32[B,32])
  soft: softmax(X=flat) -> (Out=soft : f32[B,32])
  loss: mean(X=soft) -> (Out=loss : f32[])
}
)";

std::unique_ptr<Program> MakeProgram() {
  auto program = Parse(kProgram, "p.ht");
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

const Op& OpOf(const Program& program, const std::string& name) {
  const Block& block = program.FindEntry(kTrainEntry)->block();
  return block.op(block.FindOp(name));
}

TEST(OpClassesTest, AreTheSchemasWithoutLists) {
  const std::unique_ptr<Program> program = MakeProgram();
  const OpClasses classes((OpLists()));
  EXPECT_EQ(classes.Of(OpOf(*program, "conv")), AmpClass::kGray);
  EXPECT_EQ(classes.Of(OpOf(*program, "soft")), AmpClass::kBlack);
  // An average computes, a maximum does not.
  EXPECT_EQ(classes.Of(OpOf(*program, "pool")), AmpClass::kGray);
  EXPECT_EQ(classes.Of(OpOf(*program, "most")), AmpClass::kClear);
  EXPECT_FALSE(classes.Unlisted(OpOf(*program, "conv")));
}

TEST(OpClassesTest, ListsReplaceAllOfThem) {
  const std::unique_ptr<Program> program = MakeProgram();
  OpLists lists;
  lists.given = true;
  lists.black = {"relu", "not_ours"};
  lists.white = {"relu", "softmax"};
  lists.gray = {"softmax"};
  lists.clear = {"flatten_contiguous_range"};
  lists.unlisted = AmpClass::kGray;
  const OpClasses classes(lists);
  EXPECT_EQ(classes.Of(OpOf(*program, "conv")), AmpClass::kBlack);
  EXPECT_EQ(classes.Of(OpOf(*program, "soft")), AmpClass::kWhite);
  EXPECT_EQ(classes.Of(OpOf(*program, "flat")), AmpClass::kClear);
  EXPECT_EQ(classes.Of(OpOf(*program, "pool")), AmpClass::kGray);
  EXPECT_TRUE(classes.Unlisted(OpOf(*program, "pool")));
}

// An op of its own in Paddle has the class of its own name alone. The model's
// reader keeps the alias (graph/io/model_reader_test).
TEST(OpClassesTest, TellsApartWhatPaddleListsApart) {
  constexpr char kAliases[] = R"(
program "p" dim B
entry train {
  feed x : f32[B,4,2]
  old: top_k(X=x) -> (Out=old : f32[B,4,1], Indices=i : i64[B,4,1])
  new: top_k(X=x) -> (Out=new : f32[B,4,1], Indices=j : i64[B,4,1]) {written_as="top_k_v2"}
  flat: flatten(X=x) -> (Out=flat : f32[B,8])
  flat2: flatten(X=x) -> (Out=flat2 : f32[B,8]) {written_as="flatten2"}
  range: flatten(X=x) -> (Out=range : f32[B,8]) {written_as="flatten_contiguous_range"}
}
)";
  const auto parsed = Parse(kAliases, "a.ht");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  // The alias outlives being printed, as in a compiled model.
  const auto program = Parse(Print(**parsed), "b.ht");
  ASSERT_TRUE(program.ok()) << program.status();
  const auto classes = [&](const std::vector<std::string>& gray) {
    OpLists lists;
    lists.given = true;
    lists.gray = gray;
    std::string found;
    for (const char* op : {"old", "new", "flat", "flat2", "range"}) {
      found += OpClasses(lists).Unlisted(OpOf(**program, op)) ? "-" : "g";
    }
    return found;
  };
  EXPECT_EQ(classes({"top_k"}), "g----");
  EXPECT_EQ(classes({"top_k_v2"}), "-g---");
  EXPECT_EQ(classes({"flatten2"}), "---g-");
  EXPECT_EQ(classes({"flatten_contiguous_range"}), "--g-g");
  EXPECT_EQ(classes({"flatten"}), "--g-g");
}

Decision Decide(const AmpOptions& amp, const std::string& op) {
  Options options;
  options.amp = amp;
  const KernelSet kernels = AllKernels();
  const std::unique_ptr<Program> program = MakeProgram();
  const auto changed = AssignPrecision(options, kernels).Run(*program);
  EXPECT_TRUE(changed.ok()) << changed.status();
  return OpOf(*program, op).decision;
}

TEST(UnlistedTest, HoldsAtO3WhereItIsWrittenOut) {
  AmpOptions amp;
  amp.level = Level::kO3;
  amp.op_lists.given = true;
  amp.op_lists.white = {"relu"};
  amp.op_lists.black = {"softmax"};
  amp.op_lists.unlisted = AmpClass::kBlack;
  // A listed black op is low at O3, and so is a default.
  EXPECT_EQ(Decide(amp, "soft").precision, DType::kF16);
  EXPECT_EQ(Decide(amp, "flat").precision, DType::kF16);
  amp.op_lists.unlisted_written = true;
  EXPECT_EQ(Decide(amp, "soft").precision, DType::kF16);
  EXPECT_EQ(Decide(amp, "flat").precision, DType::kF32);
  EXPECT_EQ(Decide(amp, "flat").reason, Reason::kUnlisted);
}

TEST(LevelTest, UserListsHoldAtO3ButWhiteOnesNotAtO0) {
  AmpOptions amp;
  amp.black_ops = {"softmax"};
  amp.white_ops = {"relu"};
  amp.level = Level::kO3;
  EXPECT_EQ(Decide(amp, "soft").reason, Reason::kUserBlack);
  EXPECT_EQ(Decide(amp, "conv").reason, Reason::kUserWhite);
  amp.level = Level::kO0;
  EXPECT_EQ(Decide(amp, "conv").precision, DType::kF32);
  EXPECT_EQ(Decide(amp, "conv").reason, Reason::kLevel);
}

}  // namespace
}  // namespace passes
}  // namespace halftone

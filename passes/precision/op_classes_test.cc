#include "passes/precision/op_classes.h"

#include <memory>
#include <string>

#include "google/protobuf/text_format.h"
#include "graph/base/dtype.h"
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

Options With(const std::string& amp, const std::string& lists = "") {
  using google::protobuf::TextFormat;
  Options options;
  EXPECT_TRUE(TextFormat::ParseFromString(amp, options.strategy.mutable_amp()));
  EXPECT_TRUE(TextFormat::ParseFromString(lists, &options.op_lists));
  return options;
}

TEST(OpClassesTest, AreTheSchemasWithoutLists) {
  const std::unique_ptr<Program> program = MakeProgram();
  const OpClasses classes((Options()));
  EXPECT_EQ(classes.Of(OpOf(*program, "conv")), AmpClass::kGray);
  EXPECT_EQ(classes.Of(OpOf(*program, "soft")), AmpClass::kBlack);
  // An average computes, a maximum does not.
  EXPECT_EQ(classes.Of(OpOf(*program, "pool")), AmpClass::kGray);
  EXPECT_EQ(classes.Of(OpOf(*program, "most")), AmpClass::kClear);
  EXPECT_FALSE(classes.Unlisted(OpOf(*program, "conv")));
}

TEST(OpClassesTest, ListsReplaceAllOfThem) {
  const std::unique_ptr<Program> program = MakeProgram();
  const OpClasses classes(With(
      "level: 'O0' op_lists: 'listed'",
      "black: ['relu', 'not_ours'] white: ['relu', 'softmax'] gray: 'softmax' "
      "clear: 'flatten_contiguous_range' unlisted: 'GRAY'"));
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
    Options lists = With("op_lists: 'listed'");
    for (const std::string& op : gray) lists.op_lists.add_gray(op);
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

Decision Decide(const Options& options, const std::string& op) {
  const KernelSet kernels = AllKernels();
  const std::unique_ptr<Program> program = MakeProgram();
  const auto changed = AssignPrecision(options, kernels).Run(*program);
  EXPECT_TRUE(changed.ok()) << changed.status();
  return OpOf(*program, op).decision;
}

TEST(UnlistedTest, HoldsAtO3WhereItIsWrittenOut) {
  const std::string lists = "white: 'relu' black: 'softmax'";
  const Options o3 = With("level: 'O3' op_lists: 'listed'", lists);
  // A listed black op is low at O3, and so is a default.
  EXPECT_EQ(Decide(o3, "soft").precision, DType::kF16);
  EXPECT_EQ(Decide(o3, "flat").precision, DType::kF16);
  const Options written =
      With("level: 'O3' op_lists: 'listed'", lists + " unlisted: 'BLACK'");
  EXPECT_EQ(Decide(written, "soft").precision, DType::kF16);
  EXPECT_EQ(Decide(written, "flat").precision, DType::kF32);
  EXPECT_EQ(Decide(written, "flat").reason, Reason::kUnlisted);
}

TEST(LevelTest, UserListsHoldAtO3ButWhiteOnesNotAtO0) {
  const std::string lists =
      " custom_black_list: 'softmax' custom_white_list: 'relu'";
  const Options o3 = With("level: 'O3'" + lists);
  EXPECT_EQ(Decide(o3, "soft").reason, Reason::kUserBlack);
  EXPECT_EQ(Decide(o3, "conv").reason, Reason::kUserWhite);
  const Options o0 = With("level: 'O0'" + lists);
  EXPECT_EQ(Decide(o0, "conv").precision, DType::kF32);
  EXPECT_EQ(Decide(o0, "conv").reason, Reason::kLevel);
}

}  // namespace
}  // namespace passes
}  // namespace halftone

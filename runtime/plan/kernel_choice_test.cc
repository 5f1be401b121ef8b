#include "runtime/plan/kernel_choice.h"

#include <limits>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/layout.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

class KernelChooserTest : public ::testing::Test {
 protected:
  // Chooses for each op of an entry and counts what was asked of each kernel.
  void ChooseAll(const std::string& ops) {
    auto parsed = Parse(
        absl::StrCat("program \"p\" dim B\nentry train {\n", ops, "}"), "t.ht");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    program_ = *std::move(parsed);
    request_.program = program_.get();
    KernelChooser chooser(request_, kernels_, tuning_);
    const Block& block = program_->FindEntry("train")->block();
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      const Op& op = block.op(id);
      const auto choice = chooser.ChoiceFor(block, op);
      ASSERT_TRUE(choice.ok()) << choice.status();
      chosen_[std::string(block.name(op))] = *choice;
    }
  }
  kernels::Candidate Counted(const std::string& name) {
    kernels::Candidate candidate;
    candidate.name = name;
    candidate.supports = [this, name](const kernels::BoundOp&) {
      ++asked_[name];
      return true;
    };
    candidate.workspace_bytes = [](const kernels::BoundOp& op) {
      return op.outputs()[0].bytes();
    };
    return candidate;
  }

  std::unique_ptr<Program> program_;
  kernels::KernelRegistry kernels_;
  TuningTable tuning_;
  PlanRequest request_;
  std::map<std::string, KernelChoice> chosen_;
  std::map<std::string, int> asked_;
};

TEST_F(KernelChooserTest, AsksOnceForEachKindOfOp) {
  kernels_.Add("exp", {DType::kF32}, Layout::kRowMajor, Counted("exp"));
  kernels_.Add("scale", {DType::kF32}, Layout::kRowMajor, Counted("scale"));
  ChooseAll(R"(
  feed x : f32[4]
  feed y : f32[6]
  a: exp(X=x) -> (Out=a : f32[4])   forward
  b: exp(X=a) -> (Out=b : f32[4])   backward
  c: exp(X=y) -> (Out=c : f32[6])   forward
  d: scale(X=x) -> (Out=d : f32[4]) {scale=2}   forward
  e: scale(X=x) -> (Out=e : f32[4]) {scale=3}   forward
  f: scale(X=a) -> (Out=f : f32[4]) {scale=2}   forward
)");
  EXPECT_EQ(asked_["exp"], 2);
  EXPECT_EQ(asked_["scale"], 2);
  EXPECT_EQ(chosen_["b"].candidate, chosen_["a"].candidate);
  EXPECT_EQ(chosen_["b"].workspace_bytes, 16);
  EXPECT_EQ(chosen_["c"].workspace_bytes, 24);
}

// Each random op of a model draws from a stream of its own.
TEST_F(KernelChooserTest, StreamsAskForNoKernelsOfTheirOwn) {
  kernels_.Add("dropout", {DType::kF32}, Layout::kRowMajor, Counted("drop"));
  const auto drop = [](absl::string_view name, absl::string_view attrs) {
    return absl::StrCat("  ", name, ": dropout(X=x, Seed=s, Step=s,",
                        " FirstSample=s) -> (Out=", name, " : f32[4]) {", attrs,
                        "}   forward\n");
  };
  ChooseAll(absl::StrCat("  feed x : f32[4]\n  feed s : i64[]\n",
                         drop("a", "stream=1"), drop("b", "stream=3"),
                         drop("c", "p=0.25, stream=3")));
  EXPECT_EQ(asked_["drop"], 2);
  const Block& block = program_->FindEntry("train")->block();
  const auto key = [&](absl::string_view name) {
    return TuningTable::KeyOf(kernels::BoundOp(
        block, block.op(block.FindOp(name)), request_.symbols, request_.bind));
  };
  EXPECT_EQ(key("a"), key("b"));
  EXPECT_NE(key("b"), key("c"));
}

// Fusions of the same types differ by what is in their bodies.
TEST_F(KernelChooserTest, LooksIntoBodies) {
  kernels_.AddPattern("elementwise_chain", {DType::kF32}, {Layout::kRowMajor},
                      Counted("chain"));
  const auto chain = [](const char* name, const char* first,
                        const char* operands) {
    return absl::StrCat(
        "  ", name, ".fused: fusion(X=[x, z]) -> (Out=[", name,
        " : f32[4]]) {pattern=\"elementwise_chain\"}   forward body {\n",
        "    feed x : f32[4]\n    feed z : f32[4]\n    ", first,
        "   forward\n    y: elementwise_sub(", operands,
        ") -> (Out=y : f32[4])   forward\n    return y\n  }\n");
  };
  const char kTwice[] = "s: scale(X=x) -> (Out=s : f32[4]) {scale=2}";
  const char kThrice[] = "s: scale(X=x) -> (Out=s : f32[4]) {scale=3}";
  const char kExp[] = "s: exp(X=x) -> (Out=s : f32[4])";
  ChooseAll(absl::StrCat(
      "  feed x : f32[4]\n  feed z : f32[4]\n", chain("a", kTwice, "X=s, Y=z"),
      chain("b", kTwice, "X=s, Y=z"), chain("c", kThrice, "X=s, Y=z"),
      chain("d", kExp, "X=s, Y=z"), chain("e", kTwice, "X=z, Y=s")));
  EXPECT_EQ(asked_["chain"], 4);
  EXPECT_EQ(chosen_["e.fused"].workspace_bytes, 16);
}

// As a kernel of an op library may say it.
TEST_F(KernelChooserTest, RefusesWorkspacesThatNoDeviceHolds) {
  kernels::Candidate greedy = Counted("greedy");
  int64_t bytes = int64_t{1} << 50;
  greedy.workspace_bytes = [&bytes](const kernels::BoundOp&) { return bytes; };
  kernels_.Add("exp", {DType::kF32}, Layout::kRowMajor, greedy);
  const char kExp[] =
      "  feed x : f32[4]\n  a: exp(X=x) -> (Out=a : f32[4])   forward\n";
  ChooseAll(kExp);
  EXPECT_EQ(chosen_["a"].workspace_bytes, bytes);
  const Block& block = program_->FindEntry("train")->block();
  for (const int64_t wanted :
       {bytes + 1, std::numeric_limits<int64_t>::max() - 5000,
        std::numeric_limits<int64_t>::max()}) {
    bytes = wanted;
    const auto choice = KernelChooser(request_, kernels_, tuning_)
                            .ChoiceFor(block, block.op(block.first()));
    EXPECT_EQ(ExitCodeOf(choice.status()), ExitCode::kOutOfMemory);
    EXPECT_EQ(choice.status().message(),
              absl::StrCat("a (exp): its kernel greedy wants ", wanted,
                           " bytes of workspace, more than any device holds; "
                           "expected at most 2^50: use a smaller batch or mend "
                           "the kernel"));
  }
}

TEST_F(KernelChooserTest, AnErrorNamesEachOpThatIsAsked) {
  auto parsed = Parse(R"(program "p" dim B
entry train {
  feed x : f32[4]
  a: exp(X=x) -> (Out=a : f32[4])   forward
  b: exp(X=a) -> (Out=b : f32[4])   forward
})",
                      "t.ht");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  request_.program = parsed->get();
  KernelChooser chooser(request_, kernels_, tuning_);
  const Block& block = (*parsed)->FindEntry("train")->block();
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const auto choice = chooser.ChoiceFor(block, block.op(id));
    EXPECT_EQ(ExitCodeOf(choice.status()), ExitCode::kModel);
    EXPECT_EQ(
        choice.status().message().find(std::string(block.name(block.op(id)))),
        0u)
        << choice.status();
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

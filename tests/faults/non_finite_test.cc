// Programs of random ops, one of which overflows: the replay of the rejected
// step names that one. So does the report of a run on one and two ranks, of
// models whose ops are fused, in forward or in backward. HT_TRIALS=1000 injects
// so many, from HT_SEED on.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/ir/block.h"
#include "graph/ir/program.h"
#include "graph/schema/op_registry.h"
#include "gtest/gtest.h"
#include "runtime/exec/executor_testing.h"
#include "tests/models/model_text.h"
#include "tests/models/training.h"
#include "tests/support/trials.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kFirst[] = "y: elementwise_mul(X=x, Y=w) -> (Out=y : f32[B,2])";
constexpr char kLast[] = "logs: log(X=y)";

// The executor's test program with `ops` ops before its last. Values are at
// least 3, of which 3e38 is out of range, and what is infinite stays so.
std::string ProgramText(int ops, int overflows, std::mt19937& random) {
  std::string text = absl::StrCat(kFirst, "   forward\n"), value = "y";
  std::vector<std::string> values = {value};
  for (int i = 0; i < ops; ++i) {
    const std::string name = absl::StrCat("op", i);
    absl::StrAppend(&text, "  ", name, ": ");
    const std::string& other = values[random() % values.size()];
    const std::string out = absl::StrCat(" -> (Out=", name, " : f32[B,2])");
    const unsigned kind = i == overflows ? 3 : random() % 3;
    if (kind == 0) {
      absl::StrAppend(&text, "relu(X=", value, ")", out);
    } else if (kind == 1) {
      absl::StrAppend(&text, "elementwise_max(X=", value, ", Y=", other, ")",
                      out);
    } else {
      absl::StrAppend(&text, "scale(X=", value, ")", out,
                      kind == 2 ? " {scale=1}" : " {scale=3e38}");
    }
    absl::StrAppend(&text, "   forward\n");
    value = name;
    values.push_back(value);
  }
  return absl::StrReplaceAll(
      kTestProgram, {{absl::StrCat(kFirst, "   forward\n"), text},
                     {kLast, absl::StrCat("logs: relu(X=", value, ")")}});
}

TEST(FirstNonFinite, IsTheOpThatOverflows) {
  std::mt19937 random(19);
  const int trials = Trials(60);
  for (int trial = 0; trial < trials && !HasFailure(); ++trial) {
    const int ops = 1 + static_cast<int>(random() % 40);
    const int at = static_cast<int>(random() % ops);
    const std::string text = ProgramText(ops, at, random);
    SCOPED_TRACE(text);
    const auto program = ParseProgram(text);
    TestRank rank(program.get());
    ASSERT_TRUE(rank.status.ok()) << rank.status;
    const auto binding = rank.executor->Prepare("train", Samples(2));
    ASSERT_TRUE(binding.ok()) << binding.status();
    ASSERT_TRUE(rank.executor->Initialize(7).ok());
    const std::vector<float> x = {1, 2, 3, 4};
    ASSERT_TRUE(rank.executor->Execute(*binding, {Feed(x)}).ok());
    EXPECT_EQ(rank.executor->Read(0)->Scalar("bad"), 1);
    const auto found = rank.executor->FirstNonFinite();
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->op, absl::StrCat("op", at));
    EXPECT_EQ(found->input, "");
  }
}

// ---- Whole runs of compiled models.

// A model of random ops of which one makes the first number that is not finite.
// Values of others are from 1 to 8, of which no op here makes a larger one.
class BadModel {
 public:
  explicit BadModel(Draws& draws) : draws_(draws) {
    text_ = absl::StrCat(
        "name: 'bad' format: 1\nfeed { name: 'x' dims: [-1, 8] }\n",
        Param("w", "8", "constant: 1"), Param("b", "8", "constant: 2"),
        Binary("elementwise_mul", "x", "w", "h"), Add("h", "b", "v"));
    latest_ = "v";
    Fill();
    backward_ = draws_.Below(3) == 0;
    backward_ ? InBackward() : InForward();
    Fill();
    absl::StrAppend(&text_, Unary("mean", latest_, "loss"),
                    "loss { var: 'loss' mean_over: '", latest_, "' }\n");
  }

  const std::string& text() const { return text_; }
  // What a run says of the op that does, as a regular expression. Of an op
  // that makes the loss infinite it is its own gradient that rejects a step.
  std::string Said() const {
    const std::string in_backward =
        absl::StrCat("[^;]*\\(backward of ", bad_, "\\)");
    return backward_ ? in_backward
                     : absl::StrCat("(", bad_, "|", in_backward, ")");
  }

 private:
  std::string NewName() { return absl::StrCat("v", made_++); }
  // An op of X alone, whose result is the latest value.
  void Next(const std::string& type, const std::string& attrs = "") {
    const std::string out = NewName();
    text_ += Op(type, {{"X", latest_}}, "Out", out, attrs);
    latest_ = out;
  }
  void Scale(const std::string& by) {
    Next("scale", absl::StrCat("attr { name: 'scale' f: ", by, " } "));
  }
  void WithParameter(const std::string& type, const std::string& value) {
    const std::string out = NewName();
    text_ += Param(out + ".p", "8", "constant: " + value) +
             Binary(type, latest_, out + ".p", out);
    latest_ = out;
  }

  void Fill() {
    for (int i = draws_.Below(8); i > 0; --i) {
      const std::string before = latest_;
      switch (draws_.Below(6)) {
        case 0:
          Next("relu");
          break;
        case 1:
          Scale("1");
          break;
        case 2:
          WithParameter("elementwise_mul", "1");
          break;
        case 3: {  // the mean of both
          const std::string out = NewName();
          text_ += Add(latest_, before, out);
          latest_ = out;
          Scale("0.5");
          break;
        }
        case 4: {  // the mean of a row, in each place
          const std::string out = NewName();
          text_ += Param(out + ".w", "8, 8", "constant: 0.125") +
                   Matmul(latest_, out + ".w", "", out);
          latest_ = out;
          break;
        }
        default:
          WithParameter("elementwise_max", "0.5");
      }
    }
  }

  void InForward() {
    switch (draws_.Below(5)) {
      case 0:
        Scale("3.4e38");
        break;
      case 1:
        Scale("100");
        Next("exp");
        break;
      case 2:
        WithParameter("elementwise_div", "0");
        break;
      case 3:
        Scale("-1");
        Next("log");
        break;
      default:
        Scale("-1");
        Next("sqrt");
    }
    bad_ = latest_;
  }

  // The root of 0, whose slope is infinite.
  void InBackward() {
    Scale("0");
    Next("sqrt");
    bad_ = latest_;
    WithParameter("elementwise_add", "2");
  }

  Draws& draws_;
  std::string text_, latest_, bad_;
  int made_ = 0;
  bool backward_ = false;
};

TEST(FirstNonFinite, IsNamedByRunsOfFusedModels) {
  const int trials = Trials(40), first = FirstSeed();
  int fused = 0;
  for (int seed = first; seed < first + trials && !HasFailure(); ++seed) {
    Draws draws(seed);
    const BadModel model(draws);
    const std::string level = draws.Any<std::string>({"O0", "O1", "O2", "O3"});
    const std::string dtype = draws.Any<std::string>({"fp16", "bf16"});
    const int ranks = 1 + draws.Below(2);
    SCOPED_TRACE(absl::StrCat("HT_SEED=", seed, " ", level, " ", dtype, " on ",
                              ranks, "\n", model.text()));
    const auto compiled = CompileText(
        model.text(),
        "optimizer { sgd {} } lr { base: 0 } train { batch_size: 8\n"
        "stop_rule { skipped_in_a_row: 1 loss_not_finite: 1 } }\n",
        {"amp.level=" + level, "amp.dtype=" + dtype});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (const auto& entry : compiled->program->entries()) {
      fused += entry->block().CountOf(Ops().Find("fusion"));
    }
    const TrainConfig config = ConfigOf(*compiled, "synthetic:32", "");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const absl::Status status = TrainOn(*compiled, config, ranks).status;
    ::testing::internal::GetCapturedStdout();
    ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kDiverged) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::ContainsRegex(absl::StrCat(
                    "first non-finite op: ", model.Said(), "[; ]")));
  }
  EXPECT_GT(fused, 0);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

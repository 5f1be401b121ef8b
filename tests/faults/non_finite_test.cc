// Programs of random ops, one of which overflows: the replay of the rejected
// step names that one. HT_TRIALS=1000 injects so many.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "runtime/exec/executor_testing.h"
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

}  // namespace
}  // namespace runtime
}  // namespace halftone

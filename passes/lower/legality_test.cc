#include "passes/lower/legality.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

using ::testing::HasSubstr;

absl::Status Check(const std::string& text, const TestTarget& target) {
  auto program = Parse(text, "model.pbtxt");
  EXPECT_TRUE(program.ok()) << program.status();
  return Legality(AllKernels(target)).Run(**program).status();
}

std::string Chain(int ops) {
  std::string text = "program \"p\" dim B\nentry eval {\n  feed y : f16[B,4]\n";
  std::string last = "y";
  for (int i = 0; i < ops; ++i) {
    const std::string next = absl::StrCat("r", i);
    absl::StrAppend(&text, "  ", next, ": relu(X=", last, ") -> (Out=", next,
                    " : f16[B,4])   forward f16 GRAY_ALL_LOW line=", i + 4,
                    "\n");
    last = next;
  }
  return absl::StrCat(text, "}\n");
}

TEST(LegalityTest, NamesOpLineKeyAndWhatThereIs) {
  TestTarget target;
  target.without = {"relu(f16", "relu(bf16", "relu()", "relu("};
  absl::Status status = Check(Chain(1), target);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("1 op cannot run on cpu\n  eval: r0 (relu, "
                        "model.pbtxt:4): no kernel relu(f16)@row_major on "
                        "cpu; there is: none of this op"));
  target.without = {"relu(f16"};
  status = Check(Chain(1), target);
  EXPECT_THAT(std::string(status.message()), HasSubstr("relu(f32)@row_major"));
}

TEST(LegalityTest, CountsMoreThanItPrints) {
  TestTarget target;
  target.without = {"relu(f16"};
  const absl::Status status = Check(Chain(25), target);
  EXPECT_THAT(std::string(status.message()), HasSubstr("25 ops cannot run"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("and 5 more"));
}

TEST(LegalityTest, ABodyNeedsItsOwnKernels) {
  const std::string text = R"(program "p" dim B
entry eval {
  feed x : f16[B,4]
  f: fusion(X=[x]) -> (Out=[y : f16[B,4]]) {pattern="elementwise_chain"}   forward f16 GRAY_ALL_LOW body {
    feed x : f16[B,4]
    a: tanh(X=x) -> (Out=a : f16[B,4])   forward f16 GRAY_ALL_LOW
    y: relu(X=a) -> (Out=y : f16[B,4])   forward f16 GRAY_ALL_LOW
    return y
  }
}
)";
  TestTarget target;
  EXPECT_THAT(std::string(Check(text, target).message()),
              HasSubstr("no kernel for the pattern elementwise_chain of "
                        "f16@row_major on cpu"));
  target.patterns = {"elementwise_chain"};
  EXPECT_TRUE(Check(text, target).ok());
  target.without = {"tanh(f16"};
  EXPECT_THAT(std::string(Check(text, target).message()),
              HasSubstr("a (tanh): no kernel"));
}

// Ops that look the same from outside, and bodies of the same ops, may differ.
TEST(LegalityTest, LooksIntoEachKindOfBody) {
  const auto fusion = [](const std::string& name, const std::string& first,
                         const std::string& second) {
    return absl::StrCat(
        "  ", name, ": fusion(X=[x]) -> (Out=[", name,
        " : f16[B,4]]) {pattern=\"elementwise_chain\"}   forward f16 "
        "GRAY_ALL_LOW body {\n    feed x : f16[B,4]\n    ",
        name, ".1: ", first, "(X=x) -> (Out=", name,
        ".1 : f16[B,4])   forward f16 GRAY_ALL_LOW\n    ", name, ": ", second,
        "(X=", name, ".1) -> (Out=", name,
        " : f16[B,4])   forward f16 GRAY_ALL_LOW\n    return ", name,
        "\n  }\n");
  };
  const std::string text = absl::StrCat(
      "program \"p\" dim B\nentry eval {\n  feed x : f16[B,4]\n",
      fusion("a", "tanh", "relu"), fusion("b", "tanh", "sigmoid"),
      fusion("c", "tanh", "relu"), fusion("d", "tanh", "sigmoid"), "}\n");
  TestTarget target;
  target.patterns = {"elementwise_chain"};
  EXPECT_TRUE(Check(text, target).ok()) << Check(text, target);
  target.without = {"sigmoid(f16"};
  const std::string message(Check(text, target).message());
  EXPECT_THAT(message, HasSubstr("2 ops cannot run"));
  EXPECT_THAT(message, HasSubstr("b (sigmoid): no kernel"));
  EXPECT_THAT(message, HasSubstr("d (sigmoid): no kernel"));
}

}  // namespace
}  // namespace passes
}  // namespace halftone

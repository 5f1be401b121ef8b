// Models of the zoo with the weights, and so the names, of torchvision and
// Hugging Face: outputs, and losses of three steps of AdamW. HT_TORCH_PYTHON
// names an interpreter that has them; without one the tests are skipped.
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

class ZooOracle : public testing::TestWithParam<const char*> {};

TEST_P(ZooOracle, IsTheSame) {
  const char* python = std::getenv("HT_TORCH_PYTHON");
  const std::string work = NewPath("zoo");
  ASSERT_EQ(RunProgram({"/bin/mkdir", "-p", work}).exit_code(), 0);
  const Result result = RunProgram(
      {python == nullptr ? "/usr/bin/python3" : python,
       "tests/numerics/zoo_oracle.py", "tools/halftone", work, GetParam()});
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  if (absl::StartsWith(result.out, "skip")) GTEST_SKIP() << result.out;
  double difference = 1;
  ASSERT_TRUE(absl::SimpleAtod(result.out, &difference)) << result.out;
  // Sums of up to 50,000 products in another order: 2e-6 was seen.
  EXPECT_LT(difference, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, ZooOracle,
                         testing::Values("resnet18", "resnet50", "mobilenet_v2",
                                         "densenet121", "efficientnet_b0",
                                         "vit_b_16", "bert", "bert_pretraining",
                                         "gpt2"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace halftone

// Models of the zoo with the weights, and so the names, of torchvision and
// Hugging Face: outputs, and losses of three steps of AdamW. HT_TORCH_PYTHON
// names an interpreter that has them; without one the tests are skipped.
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

struct Compared {
  const char* name;
  // Sums of up to 50,000 products in another order: 2e-6 was seen.
  double most = 1e-5;
};

class ZooOracle : public testing::TestWithParam<Compared> {};

TEST_P(ZooOracle, IsTheSame) {
  const char* python = std::getenv("HT_TORCH_PYTHON");
  const std::string work = NewPath("zoo");
  ASSERT_TRUE(MakeDirectories(work).ok());
  const Result result =
      RunProgram({python == nullptr ? "/usr/bin/python3" : python,
                  "tests/numerics/zoo_oracle.py", "tools/halftone", work,
                  GetParam().name});
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  if (absl::StartsWith(result.out, "skip")) GTEST_SKIP() << result.out;
  double difference = 1;
  ASSERT_TRUE(absl::SimpleAtod(result.out, &difference)) << result.out;
  EXPECT_LT(difference, GetParam().most);
}

// Of bf16: half a unit in the last place of numbers near 1.
constexpr double kBf16 = 1.0 / 256;

INSTANTIATE_TEST_SUITE_P(
    Models, ZooOracle,
    testing::Values(
        Compared{"resnet18"}, Compared{"resnet50"}, Compared{"mobilenet_v2"},
        Compared{"densenet121"}, Compared{"efficientnet_b0"},
        Compared{"vit_b_16"}, Compared{"bert"}, Compared{"bert_pretraining"},
        Compared{"gpt2"}, Compared{"lstm_lm"}, Compared{"lstm_lm_bf16", kBf16},
        Compared{"lstm_classifier"}, Compared{"lstm_classifier_bf16", kBf16}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace halftone

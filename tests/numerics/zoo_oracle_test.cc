// Models of the zoo with the weights, and so the names, of torchvision and
// Hugging Face: outputs, gradients, and losses of three steps of AdamW.
// HT_TORCH_PYTHON names an interpreter that has them; without one the tests are
// skipped.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

struct Compared {
  const char* name;
  // Of outputs, gradients and losses.
  std::vector<double> most;
};

// Sums of up to 50,000 products in another order, in f32: 2e-6 was seen.
const double kF32 = 1e-5;
const std::vector<double> kOutputs = {kF32};
const std::vector<double> kTrained = {kF32, kF32, kF32};
// Half a unit in the last place of bf16 is 1/256 of a number, and a few of them
// add up: 0.010, 0.015 and 0.0006 were seen. Gradients of PyTorch's own
// autocast are as far off: 0.014 where ours are 0.015 (BERT).
const std::vector<double> kBf16 = {0.02, 0.025, 0.004};
// Batch norms enlarge what is lost before them: 0.30, PyTorch's autocast 0.29.
const std::vector<double> kBf16Norms = {0.02, 0.4, 0.004};

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
  const std::vector<std::string> differences =
      absl::StrSplit(absl::StripAsciiWhitespace(result.out), ' ');
  ASSERT_EQ(differences.size(), GetParam().most.size()) << result.out;
  for (size_t i = 0; i < differences.size(); ++i) {
    double difference = 1;
    ASSERT_TRUE(absl::SimpleAtod(differences[i], &difference)) << result.out;
    EXPECT_LT(difference, GetParam().most[i]) << i << " of " << result.out;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ZooOracle,
    testing::Values(
        Compared{"resnet18", kOutputs}, Compared{"resnet50", kOutputs},
        Compared{"mobilenet_v2", kOutputs}, Compared{"densenet121", kOutputs},
        Compared{"efficientnet_b0", kOutputs}, Compared{"vit_b_16", kOutputs},
        Compared{"bert", kTrained}, Compared{"bert_bf16", kBf16},
        Compared{"bert_pretraining", kTrained},
        Compared{"bert_pretraining_bf16", kBf16}, Compared{"gpt2", kTrained},
        Compared{"gpt2_bf16", kBf16}, Compared{"lstm_lm", kTrained},
        Compared{"lstm_lm_bf16", kBf16}, Compared{"lstm_classifier", kTrained},
        Compared{"lstm_classifier_bf16", kBf16}, Compared{"vit_s_16", kTrained},
        Compared{"vit_s_16_bf16", kBf16}, Compared{"unet3d", kTrained},
        Compared{"unet3d_bf16", kBf16Norms}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace halftone

// halftone import against ONNX's own node tests and PyTorch's exports of
// torchvision's nets, halftone export against ONNX's checker and runtime.
// HT_TORCH_PYTHON names an interpreter that has the
// packages, else python3 is asked; where it lacks them a test is skipped.
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Python() {
  const char* path = std::getenv("HT_TORCH_PYTHON");
  return path == nullptr ? "/usr/bin/python3" : path;
}

bool Has(const std::string& packages) {
  return RunProgram({Python(), "-c", "import " + packages}).exit_code() == 0;
}

// As many are taken as were, and all that are taken are right.
TEST(OnnxOracle, NodeTests) {
  if (!Has("onnx, numpy")) GTEST_SKIP() << Python() << " has no onnx";
  const Result result = RunProgram({Python(), "tests/cli/onnx_nodes_oracle.py",
                                    "tools/halftone", "--at-least", "722"});
  EXPECT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr(" cases: "));
}

void RunNets(const std::vector<std::string>& words) {
  if (!Has("onnx, torchvision")) {
    GTEST_SKIP() << Python() << " has no torchvision or onnx";
  }
  std::vector<std::string> command = {
      Python(), "tests/cli/onnx_torchvision_oracle.py", "tools/halftone",
      "--only", "resnet18,squeezenet1_1,shufflenet_v2_x1_0"};
  command.insert(command.end(), words.begin(), words.end());
  const Result result = RunProgram(command);
  EXPECT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("resnet18"));
  EXPECT_THAT(result.out, Not(HasSubstr("FAILED")));
}

TEST(OnnxOracle, TorchvisionNetsPredictWhatTheyDoInPyTorch) { RunNets({}); }

TEST(OnnxOracle, TorchvisionNetsTrainAsInPyTorch) { RunNets({"--train"}); }

// As PyTorch 2's exporter writes them.
TEST(OnnxOracle, TransformersPredictAndTrainAsInPyTorch) {
  if (!Has("onnxscript, torch, transformers")) {
    GTEST_SKIP() << Python() << " has no transformers, torch or onnxscript";
  }
  const Result result =
      RunProgram({Python(), "tests/cli/onnx_transformers_oracle.py",
                  "tools/halftone", "--only", "bert,llama,vit"});
  EXPECT_EQ(result.exit_code(), 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("llama"));
}

// What is exported, in ONNX Runtime.
void RunExport(std::vector<std::string> words) {
  if (!Has("onnx, onnxruntime")) {
    GTEST_SKIP() << Python() << " has no onnx or onnxruntime";
  }
  words.insert(words.begin() + 1, "tools/halftone");
  words.insert(words.begin(), Python());
  const Result result = RunProgram(words);
  EXPECT_EQ(result.exit_code(), 0) << result.out << result.err;
}

TEST(OnnxOracle, ExportedModelsComputeTheSameInOnnxRuntime) {
  RunExport(
      {"tests/cli/onnx_export_oracle.py", "--only",
       "resnet18,mobilenet_v2,vit_s_16,unet2d group,unet3d,bert_base,gpt2,"
       "lstm_*,*.pbtxt"});
}

TEST(OnnxOracle, ExportedModelsOf16BitsComputeTheSameInOnnxRuntime) {
  RunExport({"tests/cli/onnx_export_oracle.py", "--dtype", "f16", "--only",
             "resnet18,vit_s_16,lstm_*,*.pbtxt"});
}

TEST(OnnxOracle, ExportedOpsComputeTheSameInOnnxRuntime) {
  RunExport({"tests/cli/onnx_export_ops_oracle.py", "--at-least", "900"});
}

}  // namespace
}  // namespace halftone

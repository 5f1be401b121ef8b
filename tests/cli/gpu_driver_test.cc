// What a user is told whose machine has no driver that serves this build: a
// driver of our own lies where CUDA looks first.
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/child.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GpuDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result compiled =
        RunProgram({"tools/halftone", "compile", "models/mnist_convnet.pbtxt",
                    "--strategy", "models/mnist_o1.pbtxt", "--target", "sm_90",
                    "-o", model_});
    ASSERT_EQ(compiled.exit_code(), 0) << compiled.err;
    char here[4096];
    ASSERT_NE(getcwd(here, sizeof(here)), nullptr);
    driver_ = absl::StrCat(here, "/tests/cli/driver");
  }

  // "run" or "tune" of the model on a GPU, where the driver's functions have
  // these results.
  Result On(std::vector<std::string> verb,
            const std::map<std::string, std::string>& results) {
    std::map<std::string, std::string> env = OwnVariables();
    env.erase("CUDA_VISIBLE_DEVICES");
    env["LD_LIBRARY_PATH"] = driver_;
    for (const auto& [name, value] : results) env[name] = value;
    verb.insert(verb.begin(), "tools/halftone");
    return Wait(Start("gpu", verb, env));
  }
  Result Run(const std::map<std::string, std::string>& results) {
    return On({"run", model_, "--data", "synthetic", "--gpus", "0"}, results);
  }

  const std::string model_ =
      absl::StrCat(::testing::TempDir(), "/", getpid(), ".htc");
  std::string driver_;
};

TEST_F(GpuDriver, IsTooOld) {
  const Result result = Run({{"DRIVER_VERSION", "12040"}});
  EXPECT_EQ(result.exit_code(), 9);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("--gpus 0: the NVIDIA driver is too old"),
                    HasSubstr("serves CUDA 12.4"), HasSubstr("or newer")));
  EXPECT_EQ(
      On({"tune", model_, "--gpus", "0"}, {{"DRIVER_VERSION", "12040"}}).err,
      result.err);
}

TEST_F(GpuDriver, ShowsNoDevice) {
  const Result result = Run({{"DRIVER_INIT", "100"}});
  EXPECT_EQ(result.exit_code(), 9);
  EXPECT_THAT(result.err, AllOf(HasSubstr("--gpus 0: cudaGetDeviceCount"),
                                HasSubstr("no NVIDIA GPU is visible")));
}

TEST_F(GpuDriver, IsNotReady) {
  const std::map<std::string, std::string> remedies = {
      {"802", "nvidia-fabricmanager"},
      {"803", "different versions"},
      {"804", "cuda-compat"},
      {"999", "dmesg"}};
  for (const auto& [code, remedy] : remedies) {
    const Result result = Run({{"DRIVER_INIT", code}});
    EXPECT_EQ(result.exit_code(), 9);
    EXPECT_THAT(result.err,
                AllOf(HasSubstr(absl::StrCat(code, "): ")), HasSubstr(remedy)));
  }
}

// Each rank of a launch says it, and none hangs.
TEST_F(GpuDriver, IsMissedByEveryRank) {
  const Result result =
      On({"launch", "--gpus", "0,1", "run", model_, "--data", "synthetic"},
         {{"DRIVER_VERSION", "12040"}});
  EXPECT_EQ(result.exit_code(), 9);
  EXPECT_THAT(result.err, HasSubstr("the NVIDIA driver is too old"));
}

// Nobody asked for a GPU: the model did.
TEST_F(GpuDriver, IsMissedByTheModelAlone) {
  if (access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "a driver is here";
  const Result result = On({"run", model_, "--data", "synthetic"}, {});
  EXPECT_EQ(result.exit_code(), 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("--target cpu"), HasSubstr("--gpus 0")));
  const Result other =
      On({"run", model_, "--data", "synthetic", "--target", "sm_80"}, {});
  EXPECT_EQ(other.exit_code(), 1);
  EXPECT_THAT(other.err, Not(HasSubstr("--gpus")));
}

}  // namespace
}  // namespace halftone

#include "kernels/cuda/cudnn_parts.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CudnnParts, AreThoseOfTheLibraryInUse) {
  const std::string folder = CudnnFolder();
  EXPECT_EQ(access((folder + "/libcudnn.so.9").c_str(), F_OK), 0) << folder;
  const absl::Status status = CheckCudnnParts(folder);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(CudnnParts, ADamagedOneIsNamed) {
  const std::string folder =
      absl::StrCat(::testing::TempDir(), "/parts-", getpid());
  for (const char* part : {"engines_runtime_compiled", "engines_precompiled",
                           "heuristic", "graph"}) {
    const std::string name = absl::StrCat("libcudnn_", part, ".so.9");
    std::filesystem::create_directories(folder);
    std::ofstream(absl::StrCat(folder, "/", name)) << "cut short";
    const absl::Status status = CheckCudnnParts(folder);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kDevice);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat(folder, "/", name)),
                      HasSubstr("nvidia-cudnn-cu13")));
  }
}

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#include "runtime/gpu/gpu_library.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The text of the error, which must be of class kDevice.
std::string Message(const absl::Status& status) {
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kDevice) << status;
  return std::string(status.message());
}
std::string OpenError(const std::string& path) {
  const auto library = GpuLibrary::OpenAt(path);
  return library.ok() ? "opened" : Message(library.status());
}

TEST(GpuLibrary, SaysThatThisBuildHasNone) {
  EXPECT_THAT(OpenError("/nowhere/libhalftone_cuda.so"),
              AllOf(HasSubstr("/nowhere/libhalftone_cuda.so"),
                    HasSubstr("//tools:libhalftone_cuda.so"),
                    HasSubstr("--target cpu")));
  // Nor is there one beside a test.
  const auto library = GpuLibrary::Open();
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(Message(library.status()), HasSubstr(kGpuLibraryName));
}

// --gpus takes what nvidia-smi shows.
TEST(GpuLibrary, HasDevicesNumberedByBusUnlessTheUserSaysHow) {
  unsetenv("CUDA_DEVICE_ORDER");
  OpenError("/nowhere/libhalftone_cuda.so");
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", /*overwrite=*/1);
  OpenError("/nowhere/libhalftone_cuda.so");
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_ORDER"), "FASTEST_FIRST");
}

TEST(GpuLibrary, NamesTheMissingLibraryAndItsPackage) {
  const auto explain = [](const char* file) {
    return Message(ExplainOpenFailure(
        "/a/libhalftone_cuda.so",
        std::string(file) + ": cannot open shared object file: No such file or "
                            "directory"));
  };
  EXPECT_THAT(explain("libcudnn.so.9"),
              AllOf(HasSubstr("libcudnn.so.9 is missing"),
                    HasSubstr("nvidia-cudnn-cu13")));
  EXPECT_THAT(explain("libnccl.so.2"),
              AllOf(HasSubstr("libnccl.so.2"), HasSubstr("nvidia-nccl-cu13")));
  EXPECT_THAT(explain("libcublasLt.so.13"), HasSubstr("nvidia-cublas"));
  EXPECT_THAT(explain("libother.so"), HasSubstr("libother.so is missing"));
}

TEST(GpuLibrary, ToldByTheLinkerOfWhatDoesNotFit) {
  const std::string path = ::testing::TempDir() + "/damaged.so";
  std::ofstream(path) << "not a library";
  EXPECT_THAT(OpenError(path), AllOf(HasSubstr(path), HasSubstr("damaged"),
                                     Not(HasSubstr("is missing"))));
}

TEST(GpuLibrary, SaysWhichLibraryDoesNotFit) {
  constexpr char kPath[] = "/a/libhalftone_cuda.so";
  const auto explain = [&](const char* says) {
    return Message(ExplainOpenFailure(kPath, absl::StrCat(kPath, ": ", says)));
  };
  EXPECT_THAT(
      explain("undefined symbol: ncclCommInitRankConfig"),
      AllOf(StartsWith("/a/libhalftone_cuda.so: undefined symbol: nccl"),
            HasSubstr("the libnccl found here does not fit"),
            HasSubstr("nvidia-nccl-cu13")));
  EXPECT_THAT(
      explain("undefined symbol: cublasLtMatmul, version libcublasLt.so.13"),
      HasSubstr("pip install nvidia-cublas"));
  EXPECT_THAT(explain("undefined symbol: cudnnBackendExecute"),
              HasSubstr("cuDNN 9"));
  EXPECT_THAT(explain("undefined symbol: stranger"), HasSubstr("damaged"));
}

// None of the binary's is among them, or a GPU's plan would hold it.
TEST(GpuLibrary, HasItsOwnKernelsAlone) {
  const auto library = GpuLibrary::OpenAt("runtime/gpu/libtest_one_kernel.so");
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_THAT((*library)->kernels().Keys(),
              ::testing::ElementsAre("relu(f16)@row_major"));
}

TEST(GpuLibrary, RefusesAnotherBuilds) {
  EXPECT_THAT(OpenError("runtime/gpu/libtest_other_build.so"),
              AllOf(HasSubstr("another build"), HasSubstr("0123456789abcdef"),
                    HasSubstr(GpuStamp())));
  EXPECT_THAT(OpenError("runtime/gpu/libtest_stranger.so"),
              HasSubstr("interface none"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

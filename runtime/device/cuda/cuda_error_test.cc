#include "runtime/device/cuda/cuda_error.h"

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

absl::Status Of(cudaError_t code) {
  return CudaErrorOf(code, "cudaFoo(&x, 3)", "conv1", "cuda:2");
}
std::string Text(cudaError_t code) { return std::string(Of(code).message()); }

TEST(CudaError, NamesCallContextDeviceAndCode) {
  EXPECT_THAT(Text(cudaErrorInvalidValue),
              AllOf(StartsWith("cudaFoo for conv1 on cuda:2: "),
                    HasSubstr("(cudaErrorInvalidValue, 1)")));
  const absl::Status bare =
      CudaErrorOf(cudaErrorInvalidValue, "cudaFoo()", "", "");
  EXPECT_THAT(std::string(bare.message()), StartsWith("cudaFoo: "));
  EXPECT_TRUE(Of(cudaSuccess).ok());
}

TEST(CudaError, HasTheClassThatDecidesTheExitCode) {
  EXPECT_EQ(ExitCodeOf(Of(cudaErrorMemoryAllocation)), ExitCode::kOutOfMemory);
  EXPECT_EQ(ExitCodeOf(Of(cudaErrorNoDevice)), ExitCode::kDevice);
  EXPECT_EQ(ExitCodeOf(Of(cudaErrorDevicesUnavailable)), ExitCode::kDevice);
  EXPECT_EQ(ExitCodeOf(Of(cudaErrorIllegalAddress)), ExitCode::kDevice);
  EXPECT_EQ(ExitCodeOf(Of(cudaErrorInvalidConfiguration)),
            ExitCode::kCompilerBug);
  EXPECT_EQ(ExitCodeOf(Of(cudaErrorStreamCaptureUnjoined)),
            ExitCode::kCompilerBug);
}

TEST(CudaError, SaysWhatToDo) {
  EXPECT_THAT(Text(cudaErrorNoDevice), HasSubstr("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(Text(cudaErrorInsufficientDriver), HasSubstr("driver"));
  EXPECT_THAT(Text(cudaErrorNoKernelImageForDevice), HasSubstr("sm_80"));
  EXPECT_THAT(Text(cudaErrorIllegalAddress),
              HasSubstr("CUDA_LAUNCH_BLOCKING=1"));
  for (cudaError_t code :
       {cudaErrorECCUncorrectable, static_cast<cudaError_t>(226)}) {
    EXPECT_THAT(Text(code),
                AllOf(HasSubstr("Xid"), Not(HasSubstr("BLOCKING"))));
  }
}

TEST(CudaError, KnowsWhatADeviceDoesNotSurvive) {
  for (cudaError_t code :
       {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorAssert,
        cudaErrorECCUncorrectable, cudaErrorExternalDevice,
        static_cast<cudaError_t>(226),  // contained
        static_cast<cudaError_t>(721)}) {
    EXPECT_TRUE(IsSticky(code)) << code;
  }
  for (cudaError_t code : {cudaSuccess, cudaErrorMemoryAllocation,
                           cudaErrorInvalidValue, cudaErrorNotReady}) {
    EXPECT_FALSE(IsSticky(code)) << code;
  }
}

TEST(CudaError, MacroLooksAtTheContextOnlyOnErrors) {
  int looked = 0;
  const auto context = [&looked] {
    ++looked;
    return "conv1";
  };
  EXPECT_TRUE(HT_CUDA(cudaSuccess, context()).ok());
  EXPECT_EQ(looked, 0);
  const absl::Status status = HT_CUDA(cudaErrorInvalidValue, context());
  EXPECT_EQ(looked, 1);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cudaErrorInvalidValue for conv1"));
}

// Last in this file: the device (here: none) stays broken for the process.
TEST(CudaError, AStickyErrorIsWhatEveryLaterOneIs) {
  const absl::Status first =
      CudaCallStatus(cudaErrorIllegalAddress, "cudaEventQuery(e)", "conv1");
  EXPECT_THAT(std::string(first.message()), HasSubstr("for conv1"));
  EXPECT_EQ(CudaCallStatus(cudaErrorLaunchFailure, "cudaFoo()", "fc2"), first);
  EXPECT_EQ(CudaCallStatus(cudaErrorInvalidValue, "cudaFoo()", "fc2"), first);
  EXPECT_EQ(CudaLibraryError("cudnnFoo()", "fc2", "failed"), first);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

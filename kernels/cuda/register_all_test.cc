#include "kernels/cuda/register_all.h"

#include <iostream>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

// Ops and patterns that no kernel here computes yet: libraries do.
bool IsLibraryCall(const std::string& key) {
  for (const char* prefix : {"conv2d", "depthwise_conv2d", "pattern:conv",
                             "matmul(", "mul(", "pattern:matmul"}) {
    if (absl::StartsWith(key, prefix)) return true;
  }
  return false;
}

std::set<std::string> Lacking(const KernelRegistry& cuda) {
  const auto keys = cuda.Keys("cuda");
  const std::set<std::string> has(keys.begin(), keys.end());
  std::set<std::string> lacking;
  for (const std::string& key : Kernels().Keys("cpu")) {
    if (has.count(key) == 0) lacking.insert(key);
  }
  return lacking;
}

// Without a device or a driver.
TEST(RegisterCudaKernelsTest, EveryKeyOfTheCpu) {
  KernelRegistry registry;
  RegisterCudaKernels(registry);
  for (const std::string& key : Lacking(registry)) {
    EXPECT_TRUE(IsLibraryCall(key)) << key << " has no CUDA kernel";
    std::cout << "no CUDA kernel in kernels/cuda: " << key << "\n";
  }
}

TEST(RegisterCudaKernelsTest, ReportsWhatIsMissing) {
  EXPECT_EQ(Lacking(KernelRegistry()).size(), Kernels().Keys("cpu").size());
}

TEST(RegisterCudaKernelsTest, RegistersForNoOtherDevice) {
  KernelRegistry registry;
  RegisterCudaKernels(registry);
  EXPECT_TRUE(registry.Keys("cpu").empty());
  EXPECT_FALSE(registry.Keys("cuda").empty());
}

}  // namespace
}  // namespace kernels
}  // namespace halftone

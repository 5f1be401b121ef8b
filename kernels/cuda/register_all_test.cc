#include "kernels/cuda/register_all.h"

#include <iostream>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

// What the libraries lack: sums of products in one type that are rounded to
// another, and a ReLU that is known to keep NaNs (matmul.cu).
bool LibrariesLack(const std::string& key) {
  for (const char* lacking :
       {"conv2d_grad_filter(f32,f16)", "conv2d_grad_filter(f32,bf16)",
        "conv2d_grad_filter(f16,f32)", "conv2d_grad_filter(f16,bf16)",
        "conv2d_grad_filter(bf16,f32)", "conv2d_grad_filter(bf16,f16)",
        "matmul(f32,f16)", "matmul(f32,bf16)", "matmul(f16,bf16)",
        "matmul(bf16,f16)", "mul(f32,f16)", "mul(f32,bf16)", "mul(f16,bf16)",
        "mul(bf16,f16)", "pattern:matmul_bias_relu"}) {
    if (absl::StartsWith(key, lacking)) return true;
  }
  return false;
}

std::set<std::string> Lacking(const KernelRegistry& cuda) {
  const auto keys = cuda.Keys();
  const std::set<std::string> has(keys.begin(), keys.end());
  std::set<std::string> lacking;
  for (const std::string& key : Kernels().Keys()) {
    if (has.count(key) == 0) lacking.insert(key);
  }
  return lacking;
}

// Without a device or a driver.
TEST(RegisterCudaKernelsTest, EveryKeyOfTheCpu) {
  KernelRegistry registry;
  RegisterCudaKernels(registry);
  for (const std::string& key : Lacking(registry)) {
    EXPECT_TRUE(LibrariesLack(key)) << key << " has no CUDA kernel";
    std::cout << "no CUDA kernel in kernels/cuda: " << key << "\n";
  }
}

TEST(RegisterCudaKernelsTest, ReportsWhatIsMissing) {
  EXPECT_EQ(Lacking(KernelRegistry()).size(), Kernels().Keys().size());
}

}  // namespace
}  // namespace kernels
}  // namespace halftone

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
// another, and a ReLU that is known to keep NaNs (matmul.cu). What GPUs fuse
// into convolutions needs not be made again for their gradients alone.
bool LibrariesLack(const std::string& key) {
  for (const std::string conv : {"conv1d", "conv2d", "conv3d"}) {
    const std::string filter = conv + "_grad_filter(";
    if (!absl::StartsWith(key, filter)) continue;
    for (const std::string dtype : {"f32", "f16", "bf16"}) {
      if (absl::StartsWith(key, filter + dtype + "," + dtype)) return false;
    }
    return true;
  }
  for (const char* lacking :
       {"matmul(f32,f16)", "matmul(f32,bf16)", "matmul(f16,bf16)",
        "matmul(bf16,f16)", "mul(f32,f16)", "mul(f32,bf16)", "mul(f16,bf16)",
        "mul(bf16,f16)", "pattern:matmul_bias_relu", "pattern:recompute_"}) {
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

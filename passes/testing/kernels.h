// Kernel sets for tests: a target that can do everything, less what a test
// takes away.
#ifndef HALFTONE_PASSES_TESTING_KERNELS_H_
#define HALFTONE_PASSES_TESTING_KERNELS_H_

#include <string>
#include <vector>

#include "passes/kernel_set.h"

namespace halftone {
namespace passes {

struct TestTarget {
  std::string name = "cpu";
  // Fusion patterns that it has: "conv_stats(f16)@channels_last", or a name for
  // all dtypes and layouts.
  std::vector<std::string> patterns;
  // It has no key that begins with one of these: "relu(f16", "softmax(f32,f16".
  std::vector<std::string> without;
};

// Every op in every combination of dtypes and layouts that its schema allows.
KernelSet AllKernels(const TestTarget& target = {});

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_TESTING_KERNELS_H_

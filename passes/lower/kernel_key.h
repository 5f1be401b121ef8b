// The kernel key of an op of a program.
#ifndef HALFTONE_PASSES_LOWER_KERNEL_KEY_H_
#define HALFTONE_PASSES_LOWER_KERNEL_KEY_H_

#include <string>

#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "passes/kernel_set.h"

namespace halftone {
namespace passes {

// Ops that the executor hands to the communicator: no kernel is asked for.
bool IsCollective(const Op& op);

// The layout of the first input, else of the first output.
Layout LeadLayout(const Block& block, const Op& op);

// Whether the target has a kernel for the op as it stands.
bool HasKernel(const KernelSet& kernels, const Block& block, const Op& op);
// ... if its type variables were these.
bool HasKernel(const KernelSet& kernels, const Block& block, const Op& op,
               absl::Span<const DType> binding);

// "matmul(f16,f16)@row_major".
std::string KernelKey(const Block& block, const Op& op);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_KERNEL_KEY_H_

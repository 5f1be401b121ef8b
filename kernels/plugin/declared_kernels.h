// The kernels of libraries of ops, for the registries of their devices.
#ifndef HALFTONE_KERNELS_PLUGIN_DECLARED_KERNELS_H_
#define HALFTONE_KERNELS_PLUGIN_DECLARED_KERNELS_H_

#include "absl/strings/string_view.h"
#include "kernels/kernel_registry.h"
#include "kernels/plugin/halftone_op_abi.h"

namespace halftone {
namespace kernels {

// Adds those that a library declares for "cpu" or "cuda", whose ops are in
// Ops(); what it declares has been checked, and lasts.
void AddKernelsOf(const HalftoneOpLibrary& library, absl::string_view device,
                  KernelRegistry* registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_PLUGIN_DECLARED_KERNELS_H_

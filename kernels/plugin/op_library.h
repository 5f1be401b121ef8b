// --op-library: the ops of a shared library beside the binary's own.
#ifndef HALFTONE_KERNELS_PLUGIN_OP_LIBRARY_H_
#define HALFTONE_KERNELS_PLUGIN_OP_LIBRARY_H_

#include <string>

#include "absl/status/status.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Brings the library's schemas into Ops() and its kernels for CPUs into
// Kernels(), or leaves everything as it was: what is in it is looked at in a
// child process before it is loaded. The same file once more is nothing new.
// Not while another thread reads Ops() or has kernels. Errors: kDevice for a
// file or a library that it needs that is not there; kModel for what is wrong
// in it, with the op and the slot.
absl::Status LoadOpLibrary(const std::string& path);

// Adds the kernels for GPUs of the libraries that are there, but of the first
// `known` ones; returns how many there are.
size_t AddGpuKernels(size_t known, KernelRegistry* registry);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_PLUGIN_OP_LIBRARY_H_

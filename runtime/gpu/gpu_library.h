// Opens the shared library that has all CUDA code, when a GPU is asked for: the
// binary itself starts on machines without a driver or CUDA's libraries.
#ifndef HALFTONE_RUNTIME_GPU_GPU_LIBRARY_H_
#define HALFTONE_RUNTIME_GPU_GPU_LIBRARY_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/gpu/gpu_interface.h"

namespace halftone {
namespace runtime {

class GpuLibrary {
 public:
  // The library beside this binary; opened once per process and never closed.
  // Errors (kDevice) say what is missing and how to get it: the library itself,
  // cuDNN, NCCL or cuBLASLt, or that it is of another build.
  static absl::StatusOr<const GpuLibrary*> Open();
  // The same for a library elsewhere: for tests.
  static absl::StatusOr<const GpuLibrary*> OpenAt(const std::string& path);

  const GpuInterface* operator->() const { return interface_; }
  // The library's, which run on GPUs, and those of op libraries.
  const kernels::KernelRegistry& kernels() const { return *kernels_; }

 private:
  explicit GpuLibrary(const GpuInterface* interface);
  void AddMoreKernels();

  const GpuInterface* interface_;
  std::unique_ptr<kernels::KernelRegistry> kernels_;
  size_t added_ = 0;  // as MoreKernels counts
};

// Kernels for GPUs from elsewhere (libraries of ops): adds to a registry what
// came since there were `known` sources, and returns how many there are.
using MoreKernels =
    std::function<size_t(size_t known, kernels::KernelRegistry* registry)>;
// In force; to be set while nobody has kernels. By default there are none.
MoreKernels& MoreGpuKernels();

// What dlerror() says about the library at `path`, as an error (kDevice) with
// what to do.
absl::Status ExplainOpenFailure(absl::string_view path,
                                absl::string_view dlerror);

// The folder of this binary.
absl::StatusOr<std::string> BinaryFolder();

// Whether this machine has an NVIDIA driver, for a default; costs next to
// nothing.
bool MayHaveGpu();
// GPUs that the driver shows to all processes, counted likewise.
int CountGpuNodes();

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_GPU_GPU_LIBRARY_H_

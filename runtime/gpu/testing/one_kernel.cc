// A library of this build, with one kernel.
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "runtime/gpu/gpu_interface.h"

namespace halftone {
namespace runtime {
namespace {

void RegisterOne(kernels::KernelRegistry& registry) {
  registry.Add("relu", {DType::kF16}, Layout::kRowMajor, kernels::Candidate());
}

constexpr GpuInterface kInterface = {nullptr, nullptr, nullptr, RegisterOne,
                                     nullptr};

}  // namespace
}  // namespace runtime
}  // namespace halftone

extern "C" const halftone::runtime::GpuInterface* HalftoneGpuEntry(
    const char*, const char** own) {
  *own = halftone::runtime::GpuStamp();
  return &halftone::runtime::kInterface;
}

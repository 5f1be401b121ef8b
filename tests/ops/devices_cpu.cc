#include "graph/base/error.h"
#include "graph/schema/op_registry.h"
#include "kernels/cpu/streamed_output.h"
#include "tests/ops/devices.h"

namespace halftone {

const std::vector<std::string>& TestedDevices() {
  static const auto* const devices = new std::vector<std::string>{"cpu"};
  return *devices;
}

const kernels::KernelRegistry& TestedKernels() { return kernels::Kernels(); }

std::vector<int> TestedThreads() { return {1, 3}; }

// Once more with outputs of any size written around the caches.
absl::Status InEveryOrder(absl::string_view,
                          const std::function<absl::Status()>& run) {
  const int64_t least = kernels::LeastStreamedBytes();
  HT_RETURN_IF_ERROR(run());
  kernels::SetLeastStreamedBytes(0);
  const absl::Status status = run();
  kernels::SetLeastStreamedBytes(least);
  return status;
}

absl::StatusOr<std::unique_ptr<runtime::Device>> MakeTestedDevice(
    absl::string_view, int threads) {
  return runtime::MakeCpuDevice(0, threads);
}

// It has every op, and of the patterns these.
bool IsLeftOut(absl::string_view op) {
  return Ops().Find(op) == nullptr && op != "conv_bias_relu" &&
         op != "matmul_bias_relu" && op != "elementwise_chain";
}

}  // namespace halftone

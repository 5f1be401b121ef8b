// Kernels of the GPU as closures, and their launches.
//
//   CudaCandidate("vector", [](const BoundOp& op) {
//     const int64_t n = op.outputs()[0].elements();
//     return [n](const Buffers& buffers, Launcher& launch) {
//       launch(SomeKernel, CeilDiv(n, kThreads), kThreads, buffers..., n);
//     };
//   });
//
// The outer function runs once, at Prepare, and computes all that does not
// change; the closure only launches: nothing that it does allocates, waits or
// looks at the device, so that it can be captured into a CUDA graph.
#ifndef HALFTONE_KERNELS_CUDA_LAUNCH_H_
#define HALFTONE_KERNELS_CUDA_LAUNCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/base/error.h"
#include "kernels/common/dispatch.h"
#include "kernels/cuda/platform.h"
#include "kernels/kernel.h"
#ifdef __CUDACC__
#include "runtime/device/cuda/cuda_error.h"
#include "runtime/device/cuda/native.h"
#endif

namespace halftone {
namespace kernels {
namespace cuda {

// Threads of a block where nothing asks for another number.
inline constexpr int kThreads = 256;

HT_HOST_DEVICE constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// The work of one Enqueue on its stream; remembers the first error.
class Launcher {
 public:
  Launcher(runtime::Stream& stream, const std::string& op)
      : stream_(stream), op_(op) {}

  // Nothing if `blocks` is 0.
  template <typename... Params, typename... Args>
  void operator()(void (*kernel)(Params...), int64_t blocks, int threads,
                  Args... args) {
    static_assert(sizeof...(Params) == sizeof...(Args), "arguments");
    if (blocks == 0 || !status_.ok()) return;
    HT_CHECK(blocks > 0, "blocks of a launch");
    if (blocks > INT32_MAX) {
      status_.Update(ModelError(op_, ": ", blocks,
                                " blocks in one launch; expected at most ",
                                INT32_MAX, "; make its tensors smaller"));
      return;
    }
    std::tuple<Params...> params(args...);
    Launch(kernel, blocks, threads, params,
           std::index_sequence_for<Params...>());
  }

  // Nothing if `from` is `to` (an op whose output shares its input's storage).
  void Copy(void* to, const void* from, int64_t bytes) {
    if (to == from || bytes == 0 || !status_.ok()) return;
    status_.Update(stream_.Copy(to, from, bytes));
  }
  void Zero(void* to, int64_t bytes) {
    if (bytes == 0 || !status_.ok()) return;
    status_.Update(stream_.Fill(to, 0, bytes));
  }

  const absl::Status& status() const { return status_; }

 private:
  template <typename... Params, size_t... kIndex>
  void Launch(void (*kernel)(Params...), int64_t blocks, int threads,
              std::tuple<Params...>& params, std::index_sequence<kIndex...>) {
#ifdef __CUDACC__
    void* pointers[] = {&std::get<kIndex>(params)...};
    status_.Update(HT_CUDA(
        cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                         dim3(static_cast<unsigned>(blocks)), dim3(threads),
                         pointers, 0, runtime::CudaStreamOf(stream_)),
        op_));
#else
    emulation::Launch(blocks, threads,
                      [&] { kernel(std::get<kIndex>(params)...); });
#endif
  }

  runtime::Stream& stream_;
  const std::string& op_;
  absl::Status status_;
};

namespace launch_internal {
template <typename Run>
class CudaInstance final : public KernelInstance {
 public:
  CudaInstance(Run run, absl::string_view op) : run_(std::move(run)), op_(op) {}
  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    Launcher launch(stream, op_);
    run_(buffers, launch);
    return launch.status();
  }

 private:
  Run run_;
  std::string op_;
};
}  // namespace launch_internal

template <typename Make>
Candidate CudaCandidate(absl::string_view name, Make make) {
  Candidate candidate;
  candidate.name = std::string(name);
  candidate.prepare = [make](const BoundOp& op, runtime::Device&)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    auto run = make(op);
    return std::unique_ptr<KernelInstance>(
        new launch_internal::CudaInstance<decltype(run)>(std::move(run),
                                                         op.name()));
  };
  return candidate;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_LAUNCH_H_

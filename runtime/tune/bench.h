// One op's buffers and the time that a candidate takes. Private to
// runtime/tune.
#ifndef HALFTONE_RUNTIME_TUNE_BENCH_H_
#define HALFTONE_RUNTIME_TUNE_BENCH_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// Plain loops, which other kernels are compared with: a thousand times slower,
// so that timing them would take hours.
inline constexpr char kReference[] = "reference";

class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Create(Device& device,
                                                       int64_t flush_bytes);

  // Buffers for an op; floats are in [0.25, 1), all else is zero, which is a
  // valid label, count and verdict.
  absl::Status Take(const kernels::BoundOp& op, int64_t workspace_bytes);
  // What `runs` runs on them took, in microseconds, the fastest first.
  absl::StatusOr<std::vector<double>> Times(kernels::KernelInstance& kernel,
                                            int runs);

  int threads() const { return stream_->threads(); }

 private:
  explicit Bench(Device& device) : device_(device) {}
  absl::Status Fill(const kernels::TensorDesc& desc, char* to);

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Memory> flush_, memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void* workspace_ = nullptr;
  uint8_t flushed_ = 0;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TUNE_BENCH_H_

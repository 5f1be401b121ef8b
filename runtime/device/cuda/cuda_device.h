// An NVIDIA GPU. Everything is enqueued; the host waits only where it says so.
#ifndef HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_DEVICE_H_
#define HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

// May be used by several threads. What makes something here makes the device
// the calling thread's; who enqueues on its streams has called Use.
class CudaDevice : public Device {
 public:
  // `ordinal` counts the devices that CUDA_VISIBLE_DEVICES shows. Errors are
  // kDevice: no driver, no such device, in use by others, too old.
  static absl::StatusOr<std::unique_ptr<Device>> Create(int ordinal);

  absl::string_view kind() const override { return "cuda"; }
  int ordinal() const override { return ordinal_; }
  // "NVIDIA H100 80GB HBM3, 79.2 GiB, sm_90, driver for CUDA 13.0".
  std::string Description() const override { return description_; }
  std::string target() const override { return target_; }
  bool asynchronous() const override { return true; }
  absl::Status Use() override;

  // Zeroed. An error (kOutOfMemory) says how much was asked for and is free.
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(
      int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(
      absl::string_view name) override;
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  // By the device's own clock: nothing is waited for but the stop.
  absl::StatusOr<std::unique_ptr<Timer>> CreateTimer() override;
  // Collectives in a graph need their communicator: it ends after the graph.
  absl::StatusOr<std::unique_ptr<Graph>> Capture(
      Stream& stream, const std::function<absl::Status()>& enqueue) override;
  absl::StatusOr<int64_t> FreeBytes() override;

  // Looks after waits that take long from now on; null: nobody does.
  void SetWaitGuard(WaitGuard guard) { waits_.SetGuard(std::move(guard)); }

 private:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal) {}
  absl::Status Inspect();

  const int ordinal_;
  std::string description_;
  std::string target_;
  CudaWaits waits_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_CUDA_CUDA_DEVICE_H_

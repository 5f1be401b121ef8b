#include "runtime/device/cuda/cuda_device.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/device/cuda/cuda_error.h"

namespace halftone {
namespace runtime {
namespace {

// What a plan may not take: cuBLASLt's and NCCL's own buffers, captured graphs
// and code that is loaded when a kernel first runs.
constexpr int64_t kReserve = int64_t{512} << 20;

class DeviceMemory : public Memory {
 public:
  DeviceMemory(void* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  // Any thread may free it, also one with another device.
  ~DeviceMemory() override { (void)cudaFree(data_); }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  int64_t bytes_;
};

class PinnedMemory : public Memory {
 public:
  PinnedMemory(void* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  ~PinnedMemory() override { (void)cudaFreeHost(data_); }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  int64_t bytes_;
};

absl::Status NegativeSize(int64_t bytes) {
  return CompilerBug("allocation of ", bytes, " bytes");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Create(int ordinal) {
  HT_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  std::unique_ptr<CudaDevice> device(new CudaDevice(ordinal));
  HT_RETURN_IF_ERROR(device->Use());
  HT_RETURN_IF_ERROR(device->Inspect());
  return {std::move(device)};
}

absl::Status CudaDevice::Use() {
  return HT_CUDA(cudaSetDevice(ordinal_), absl::StrCat("cuda:", ordinal_));
}

absl::Status CudaDevice::Inspect() {
  cudaDeviceProp properties;
  HT_RETURN_IF_ERROR(
      HT_CUDA(cudaGetDeviceProperties(&properties, ordinal_), "its name"));
  int driver = 0;
  HT_RETURN_IF_ERROR(HT_CUDA(cudaDriverGetVersion(&driver), ""));
  const std::string name =
      absl::StrCat("cuda:", ordinal_, " (", properties.name, ")");
  HT_ASSIGN_OR_RETURN(
      target_, TargetOfCapability(properties.major, properties.minor, name));
  description_ = absl::StrCat(
      properties.name, ", ", HumanBytes(properties.totalGlobalMem), ", sm_",
      properties.major, properties.minor, ", driver for CUDA ", driver / 1000,
      ".", driver % 1000 / 10);
  // The first call that needs the device itself: busy ones are found here.
  return HT_CUDA(cudaFree(nullptr), name);
}

absl::StatusOr<std::unique_ptr<Memory>> CudaDevice::Allocate(int64_t bytes) {
  if (bytes < 0) return NegativeSize(bytes);
  HT_RETURN_IF_ERROR(Use());
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, std::max<int64_t>(bytes, 1));
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    size_t free = 0, total = 0;
    HT_RETURN_IF_ERROR(HT_CUDA(cudaMemGetInfo(&free, &total), ""));
    return OutOfMemoryError(
        "cuda:", ordinal_, ": no room for ", HumanBytes(bytes), ", ",
        HumanBytes(free), " of ", HumanBytes(total),
        " are free; a smaller --batch-size or level O2 needs less");
  }
  HT_RETURN_IF_ERROR(CudaCallStatus(code, "cudaMalloc", HumanBytes(bytes)));
  auto memory = absl::make_unique<DeviceMemory>(data, bytes);
  HT_RETURN_IF_ERROR(HT_CUDA(cudaMemset(data, 0, bytes), "a new arena"));
  HT_RETURN_IF_ERROR(HT_CUDA(cudaStreamSynchronize(nullptr), "a new arena"));
  return {std::move(memory)};
}

absl::StatusOr<std::unique_ptr<Memory>> CudaDevice::AllocatePinned(
    int64_t bytes) {
  if (bytes < 0) return NegativeSize(bytes);
  HT_RETURN_IF_ERROR(Use());
  void* data = nullptr;
  const cudaError_t code =
      cudaHostAlloc(&data, std::max<int64_t>(bytes, 1), cudaHostAllocPortable);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return OutOfMemoryError(
        "cuda:", ordinal_, ": no room for ", HumanBytes(bytes),
        " of pinned host memory; free some of this machine's memory, raise "
        "the container's limit, or use a smaller --batch-size");
  }
  HT_RETURN_IF_ERROR(CudaCallStatus(
      code, "cudaHostAlloc",
      absl::StrCat(HumanBytes(bytes), " of pinned host memory")));
  return {absl::make_unique<PinnedMemory>(data, bytes)};
}

absl::StatusOr<std::unique_ptr<Stream>> CudaDevice::CreateStream(
    absl::string_view name) {
  HT_RETURN_IF_ERROR(Use());
  return MakeCudaStream(name, &waits_);
}

absl::StatusOr<std::unique_ptr<Event>> CudaDevice::CreateEvent() {
  HT_RETURN_IF_ERROR(Use());
  return MakeCudaEvent(&waits_);
}

absl::StatusOr<std::unique_ptr<Timer>> CudaDevice::CreateTimer() {
  HT_RETURN_IF_ERROR(Use());
  return MakeCudaTimer(&waits_);
}

absl::StatusOr<std::unique_ptr<Graph>> CudaDevice::Capture(
    Stream& stream, const std::function<absl::Status()>& enqueue) {
  HT_RETURN_IF_ERROR(Use());
  return CaptureCudaGraph(stream, enqueue);
}

absl::StatusOr<int64_t> CudaDevice::FreeBytes() {
  HT_RETURN_IF_ERROR(Use());
  size_t free = 0, total = 0;
  HT_RETURN_IF_ERROR(HT_CUDA(cudaMemGetInfo(&free, &total), ""));
  return std::max<int64_t>(static_cast<int64_t>(free) - kReserve, 0);
}

}  // namespace runtime
}  // namespace halftone

#include "runtime/device/cuda/cuda_error.h"

#include <map>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/targets/target.h"

namespace halftone {
namespace runtime {
namespace {

// Toolkits before 12.9 have no names for them.
constexpr auto kContained = static_cast<cudaError_t>(226);
constexpr auto kTensorMemoryLeak = static_cast<cudaError_t>(721);

// The first unrecoverable error of each device of this process.
class StickyErrors {
 public:
  absl::Status Remember(int device, const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    return first_.emplace(device, status).first->second;
  }
  absl::Status Of(int device) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = first_.find(device);
    return found == first_.end() ? absl::OkStatus() : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, absl::Status> first_;
};

StickyErrors& AllStickyErrors() {
  static auto* const errors = new StickyErrors;
  return *errors;
}

absl::string_view FunctionName(absl::string_view call) {
  call = call.substr(0, call.find('('));
  const size_t member = call.rfind('.');  // of a table of functions
  return member == absl::string_view::npos ? call : call.substr(member + 1);
}

// The thread's device; -1 where there is none.
int CurrentDevice() {
  int device = -1;
  return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

std::string DeviceName(int device) {
  return device < 0 ? "" : absl::StrCat("cuda:", device);
}

std::string Describe(absl::string_view call, absl::string_view context,
                     absl::string_view device) {
  return absl::StrCat(FunctionName(call), context.empty() ? "" : " for ",
                      context, device.empty() ? "" : " on ", device);
}

// What to do about it; empty: nothing better than the code's own text.
std::string Remedy(cudaError_t code) {
  switch (code) {
    case cudaErrorNoDevice:
      return "no NVIDIA GPU is visible; check nvidia-smi and "
             "CUDA_VISIBLE_DEVICES, or use --target cpu";
    case cudaErrorInsufficientDriver:
      return "the NVIDIA driver is missing or older than this build's CUDA; "
             "install a newer one (nvidia-smi shows it)";
    case cudaErrorInvalidDevice:
      return "there is no such device; nvidia-smi -L lists them";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return absl::StrCat("this build has code for ", GpuTargetNames(),
                          " and newer devices, the latter if the driver is "
                          "not older than the toolkit");
    case cudaErrorDevicesUnavailable:
      return "the device is in use by another process in exclusive mode";
    case cudaErrorSystemNotReady:
      return "the driver's services have to run first; on machines with "
             "NVSwitch that is nvidia-fabricmanager";
    case cudaErrorSystemDriverMismatch:
      return "libcuda.so.1 and the loaded kernel module are of different "
             "versions; load the new one (restart), or give the container the "
             "host's driver";
    case cudaErrorCompatNotSupportedOnDevice:
      return "this device does not take NVIDIA's forward compatibility; leave "
             "cuda-compat out of LD_LIBRARY_PATH and update the driver";
    case cudaErrorUnknown:
      return "the driver does not say why; look at dmesg and nvidia-smi, and "
             "whether the nodes /dev/nvidia* may be opened";
    case cudaErrorMemoryAllocation:
      return "a smaller --batch-size, level O2, or a device that other "
             "processes do not use";
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorNvlinkUncorrectable:
    case kContained:
      return "the device's hardware failed; see dmesg for its Xid";
    default:
      return "";
  }
}

bool IsOurMistake(cudaError_t code) {
  switch (code) {
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidSymbol:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorMissingConfiguration:
    case cudaErrorNotReady:
      return true;
    default:
      return code >= cudaErrorStreamCaptureUnsupported &&
             code <= cudaErrorStreamCaptureWrongThread;
  }
}

}  // namespace

bool IsSticky(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
      return true;
    default:
      return code == kContained || code == kTensorMemoryLeak;
  }
}

absl::Status CudaErrorOf(cudaError_t code, absl::string_view call,
                         absl::string_view context, absl::string_view device) {
  if (code == cudaSuccess) return absl::OkStatus();
  std::string remedy = Remedy(code);
  if (IsSticky(code) && remedy.empty()) {
    remedy =
        "it, or a kernel enqueued before it, failed; CUDA_LAUNCH_BLOCKING=1 "
        "with --no-graph, or compute-sanitizer, names the kernel";
  }
  const std::string message = absl::StrCat(
      Describe(call, context, device), ": ", cudaGetErrorString(code), " (",
      cudaGetErrorName(code), ", ", static_cast<int>(code), ")",
      remedy.empty() ? "" : ": ", remedy);
  if (code == cudaErrorMemoryAllocation) return OutOfMemoryError(message);
  if (IsOurMistake(code)) return CompilerBug(message);
  return DeviceError(message);
}

absl::Status CudaCallStatus(cudaError_t code, absl::string_view call,
                            absl::string_view context) {
  if (code == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();  // told here, not again by the next launch
  const int device = CurrentDevice();
  const absl::Status earlier = AllStickyErrors().Of(device);
  if (!earlier.ok()) return earlier;
  const absl::Status status =
      CudaErrorOf(code, call, context, DeviceName(device));
  if (!IsSticky(code)) return status;
  return AllStickyErrors().Remember(device, status);
}

absl::Status CudaLibraryError(absl::string_view call, absl::string_view context,
                              absl::string_view what) {
  const int device = CurrentDevice();
  const absl::Status earlier = AllStickyErrors().Of(device);
  if (!earlier.ok()) return earlier;
  return DeviceError(Describe(call, context, DeviceName(device)), ": ", what);
}

}  // namespace runtime
}  // namespace halftone

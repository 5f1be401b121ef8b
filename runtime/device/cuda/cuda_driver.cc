#include "runtime/device/cuda/cuda_driver.h"

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/targets/target.h"
#include "runtime/device/cuda/cuda_error.h"

namespace halftone {
namespace runtime {
namespace {

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

// The first driver for a major version of CUDA (NVIDIA's "CUDA Compatibility",
// table 2; Linux).
std::string FirstDriver(int major) {
  switch (major) {
    case 11:
      return "450.80";
    case 12:
      return "525.60";
    case 13:
      return "580.65";
    default:
      return "";
  }
}

}  // namespace

absl::Status CheckDriverVersion(int driver, int built) {
  if (driver == 0) {
    return DeviceError(
        "no NVIDIA driver on this machine (libcuda.so.1 is not found, code ",
        static_cast<int>(cudaErrorInsufficientDriver),
        "): install the driver, or use --target cpu");
  }
  // Any driver serves programs of its own major version and of earlier ones.
  if (driver / 1000 >= built / 1000) return absl::OkStatus();
  const std::string first = FirstDriver(built / 1000);
  return DeviceError("the NVIDIA driver is too old: it serves CUDA ",
                     VersionText(driver), ", this build needs ", built / 1000,
                     ".0", first.empty() ? "" : ", driver ", first,
                     first.empty() ? "" : " or newer",
                     "; update the driver, or build with an older toolkit");
}

absl::StatusOr<int> CountCudaDevices() {
  int driver = 0;
  HT_RETURN_IF_ERROR(HT_CUDA(cudaDriverGetVersion(&driver), ""));
  HT_RETURN_IF_ERROR(CheckDriverVersion(driver, CUDART_VERSION));
  int count = 0;
  HT_RETURN_IF_ERROR(HT_CUDA(cudaGetDeviceCount(&count), ""));
  return count;
}

absl::Status CheckOrdinal(int ordinal) {
  HT_ASSIGN_OR_RETURN(const int count, CountCudaDevices());
  if (ordinal >= 0 && ordinal < count) return absl::OkStatus();
  return DeviceError("cuda:", ordinal, ": no such device; this process sees ",
                     count, count == 1 ? " GPU" : " GPUs",
                     ", numbered from 0 (CUDA_VISIBLE_DEVICES; nvidia-smi "
                     "-L lists all)");
}

absl::StatusOr<std::string> TargetOfCapability(int major, int minor,
                                               absl::string_view device) {
  if (const Target* target = GpuTargetFor(10 * major + minor)) {
    return target->name;
  }
  return DeviceError(device, ": its compute capability is ", major, ".", minor,
                     ", this build has kernels for ", GpuTargetNames(),
                     " and newer; use another device, or --target ",
                     CpuTarget().name);
}

absl::StatusOr<std::string> TargetOfDevice(int ordinal) {
  HT_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  const std::string device = absl::StrCat("cuda:", ordinal);
  int major = 0, minor = 0;
  HT_RETURN_IF_ERROR(
      HT_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                     ordinal),
              device));
  HT_RETURN_IF_ERROR(
      HT_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
                                     ordinal),
              device));
  return TargetOfCapability(major, minor, device);
}

}  // namespace runtime
}  // namespace halftone

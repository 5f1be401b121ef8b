#include "kernels/cuda/cudnn_targets.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr CudnnTarget kA100 = {80, R"({
"deviceName":"NVIDIA A100-SXM4-80GB","cudaDeviceId":0,"pciDeviceId":0,
"deviceVer":800,"driverVer":13000,"multiProcessorCount":108,"warpSize":32,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],
"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"maxCtasPerSM":32,
"regsPerBlock":65536,"maxRegistersPerSM":65536,
"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":166912,
"reservedSharedMemoryPerBlock":1024,"l2CacheSize":41943040,
"smClockRateKHz":1410000,"memClockRateKHz":1593000,
"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85899345920})"};

constexpr CudnnTarget kH100 = {90, R"({
"deviceName":"NVIDIA H100 80GB HBM3","cudaDeviceId":0,"pciDeviceId":0,
"deviceVer":900,"driverVer":13000,"multiProcessorCount":132,"warpSize":32,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],
"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"maxCtasPerSM":32,
"regsPerBlock":65536,"maxRegistersPerSM":65536,
"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,
"reservedSharedMemoryPerBlock":1024,"l2CacheSize":52428800,
"smClockRateKHz":1980000,"memClockRateKHz":2619000,
"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85899345920})"};

}  // namespace

const CudnnTarget& CudnnTargetOf(absl::string_view target) {
  int number = 0;
  if (absl::ConsumePrefix(&target, "sm_") &&
      absl::SimpleAtoi(target, &number) && number < kH100.compute_capability) {
    return kA100;
  }
  return kH100;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

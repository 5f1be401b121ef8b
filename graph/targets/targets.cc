// The records. A new generation of GPUs is a function like Sm90 and its name in
// Targets(); nvcc is told to make code for each compute_capability that stands
// here on a line of its own (third_party/cuda.bzl reads them).
//
// Links are 12 of 25 GB/s each way, and 18. NCCL 2.12 takes 235 of an A100's
// 300 GB/s; 0.8 of an H100's are an estimate.
#include "graph/targets/target.h"

namespace halftone {
namespace {

Target Cpu() {
  Target target;
  target.name = "cpu";
  target.image_layout = Layout::kChannelsLast;
  target.inside = {"memory"};
  return target;
}

// Rates are those of the SXM parts.
Target Sm80() {
  Target target;
  target.name = "sm_80";
  target.library = Target::Library::kCuda;
  target.compute_capability = 80;
  target.image_layout = Layout::kChannelsLast;
  target.channel_multiple = 8;
  target.devices = {{"A100-SXM4-80GB", 2.039e12, 312e12, 19.5e12, 300e9},
                    {"A100", 1.555e12, 312e12, 19.5e12, 300e9}};
  target.inside = {"nvlink3", 235.0 / 300, "NVLink 3, of A100s"};
  target.cudnn_device = R"({
"deviceName":"NVIDIA A100-SXM4-80GB","cudaDeviceId":0,"pciDeviceId":0,
"deviceVer":800,"driverVer":13000,"multiProcessorCount":108,"warpSize":32,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],
"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"maxCtasPerSM":32,
"regsPerBlock":65536,"maxRegistersPerSM":65536,
"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":166912,
"reservedSharedMemoryPerBlock":1024,"l2CacheSize":41943040,
"smClockRateKHz":1410000,"memClockRateKHz":1593000,
"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85899345920})";
  return target;
}

Target Sm90() {
  Target target;
  target.name = "sm_90";
  target.library = Target::Library::kCuda;
  target.compute_capability = 90;
  target.image_layout = Layout::kChannelsLast;
  target.channel_multiple = 8;
  target.devices = {{"H200", 4.8e12, 989e12, 67e12, 450e9},
                    {"H100", 3.35e12, 989e12, 67e12, 450e9}};
  target.inside = {"nvlink4", 0.8, "NVLink 4, of H100s and H200s"};
  target.cudnn_device = R"({
"deviceName":"NVIDIA H100 80GB HBM3","cudaDeviceId":0,"pciDeviceId":0,
"deviceVer":900,"driverVer":13000,"multiProcessorCount":132,"warpSize":32,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],
"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"maxCtasPerSM":32,
"regsPerBlock":65536,"maxRegistersPerSM":65536,
"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,
"reservedSharedMemoryPerBlock":1024,"l2CacheSize":52428800,
"smClockRateKHz":1980000,"memClockRateKHz":2619000,
"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85899345920})";
  return target;
}

}  // namespace

const std::vector<Target>& Targets() {
  static const auto* const targets =
      new std::vector<Target>{Cpu(), Sm80(), Sm90()};
  return *targets;
}

}  // namespace halftone

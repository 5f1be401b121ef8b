// What is compiled for and run on: one record per target (targets.cc). Passes,
// planner, kernels and reports read what they need to know of a machine here
// and nowhere else; what a target's kernels are, its library says itself
// (kernels/kernel_registry.h).
#ifndef HALFTONE_GRAPH_TARGETS_TARGET_H_
#define HALFTONE_GRAPH_TARGETS_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/layout.h"

namespace halftone {

// A device by the vendor's data sheet: bytes and operations per second.
struct DeviceRates {
  std::string name;  // as a part of what the driver calls it: "H100"
  double memory = 0;
  double low = 0;   // 16-bit products, dense
  double f32 = 0;   // without lower-precision units
  double link = 0;  // to the others of its machine, each way (NVLink)
};

// By what the devices of one machine reach each other: one of Links()
// (links.h).
struct DeviceLink {
  std::string name;  // of --link: "nvlink4"
  // What collectives reach of DeviceRates::link, of the last of the target's
  // devices; 0: the link is not the target's own, links.cc has its rates.
  double reached = 0;
  std::string text;  // what it is, for people, where it is the target's own
};

struct Target {
  std::string name;  // "sm_90": of --target, compiled models and kernel lists
  // In which library its kernels are: the binary itself or the GPU's.
  enum class Library : uint8_t { kOwn, kCuda };
  Library library = Library::kOwn;
  bool is_gpu() const { return library == Library::kCuda; }
  // GPUs: 10 * major + minor of the oldest device that runs its code.
  int compute_capability = 0;
  // How images lie where its kernels are fastest.
  Layout image_layout = Layout::kRowMajor;
  // Channels of an image that its units for products read at once; 1: any.
  int channel_multiple = 1;
  // Known devices, those with the more specific names first.
  std::vector<DeviceRates> devices;
  DeviceLink inside;
  // GPUs: a device as cuDNN describes one, for the choice of engines without
  // it. Numbers are of NVIDIA's data sheets, names of cuDNN's JSON.
  std::string cudnn_device;
};

// From the CPU to the newest GPU.
const std::vector<Target>& Targets();
// Null: there is none of that name.
const Target* FindTarget(absl::string_view name);
// An error (kUsage) begins with `where` and lists what there is.
absl::StatusOr<const Target*> TargetNamed(absl::string_view name,
                                          absl::string_view where);

// Runs on every machine.
const Target& CpuTarget();
// The newest whose code a GPU of this compute capability (10 * major + minor)
// runs; null: the GPU is too old for all.
const Target* GpuTargetFor(int compute_capability);
// "sm_80, sm_90".
std::string GpuTargetNames();
// The largest channel_multiple of any: what a model had better be made of.
int ChannelMultipleOfAny();
// Of the device that `description` (Device::Description) names; null: none is
// known.
const DeviceRates* FindDeviceRates(absl::string_view description);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_TARGETS_TARGET_H_

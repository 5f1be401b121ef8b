#include "graph/targets/target.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace {

std::vector<std::string> Names(bool gpus_only) {
  std::vector<std::string> names;
  for (const Target& target : Targets()) {
    if (target.is_gpu() || !gpus_only) names.push_back(target.name);
  }
  return names;
}

}  // namespace

const Target* FindTarget(absl::string_view name) {
  for (const Target& target : Targets()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

absl::StatusOr<const Target*> TargetNamed(absl::string_view name,
                                          absl::string_view where) {
  if (const Target* target = FindTarget(name)) return target;
  const std::vector<std::string> names = Names(/*gpus_only=*/false);
  return UsageError(where, name, ": no kernels for it in this build",
                    NearestHint(name, names),
                    "; known: ", absl::StrJoin(names, ", "), " (", names.back(),
                    " runs on newer devices too)");
}

const Target& CpuTarget() { return Targets().front(); }

const Target* GpuTargetFor(int compute_capability) {
  const Target* found = nullptr;
  for (const Target& target : Targets()) {
    if (target.is_gpu() && target.compute_capability <= compute_capability) {
      found = &target;
    }
  }
  return found;
}

std::string GpuTargetNames() {
  return absl::StrJoin(Names(/*gpus_only=*/true), ", ");
}

int ChannelMultipleOfAny() {
  int largest = 1;
  for (const Target& target : Targets()) {
    largest = std::max(largest, target.channel_multiple);
  }
  return largest;
}

const DeviceRates* FindDeviceRates(absl::string_view description) {
  for (const Target& target : Targets()) {
    for (const DeviceRates& device : target.devices) {
      if (absl::StrContains(description, device.name)) return &device;
    }
  }
  return nullptr;
}

}  // namespace halftone

#include "tools/report/machine.h"

#include "graph/base/error.h"
#include "graph/targets/target.h"
#include "runtime/device/device.h"
#include "runtime/device/host_info.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/gpu/targets.h"

namespace halftone {
namespace tools {

std::string ThisCpu() {
  return runtime::MakeCpuDevice(0, runtime::UsableCores())->Description();
}

BuiltTargets TargetsOfBuild() {
  BuiltTargets targets;
  for (const Target& target : Targets()) {
    (runtime::KernelKeysOf(target.name).ok() ? targets.built : targets.missing)
        .push_back(target.name);
  }
  return targets;
}

absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GpusHere() {
  HT_ASSIGN_OR_RETURN(const runtime::GpuLibrary* library,
                      runtime::GpuLibrary::Open());
  HT_ASSIGN_OR_RETURN(const int count, (*library)->count_devices());
  std::vector<absl::StatusOr<std::string>> gpus;
  for (int i = 0; i < count; ++i) {
    const auto device = (*library)->make_device(i);
    if (device.ok()) {
      gpus.emplace_back((*device)->Description());
    } else {
      gpus.emplace_back(device.status());
    }
  }
  return gpus;
}

}  // namespace tools
}  // namespace halftone

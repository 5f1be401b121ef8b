// halftone version: what this binary is and what it runs on.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "graph/io/compiled_model.h"
#include "nlohmann/json.hpp"
#include "runtime/device/device.h"
#include "runtime/device/host_info.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/gpu/targets.h"
#include "tools/common/flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

std::vector<std::string> Targets() {
  std::vector<std::string> targets = {"cpu"};
  for (const char* gpu : {"sm_80", "sm_90"}) {
    if (runtime::KernelKeysOf(gpu).ok()) targets.push_back(gpu);
  }
  return targets;
}

// This machine's GPUs, or why there are none; nothing without a driver.
std::vector<std::string> Gpus() {
  if (!runtime::MayHaveGpu()) return {};
  const auto library = runtime::GpuLibrary::Open();
  if (!library.ok()) return {std::string(library.status().message())};
  const auto count = (**library)->count_devices();
  if (!count.ok()) return {std::string(count.status().message())};
  std::vector<std::string> gpus;
  for (int i = 0; i < *count; ++i) {
    const auto device = (**library)->make_device(i);
    gpus.push_back(device.ok() ? (*device)->Description()
                               : std::string(device.status().message()));
  }
  return gpus;
}

void PrintVersion(bool json) {
  const std::string device =
      runtime::MakeCpuDevice(0, runtime::UsableCores())->Description();
  const std::vector<std::string> gpus = Gpus();
  if (json) {
    const nlohmann::ordered_json object = {
        {"schema", 1},
        {"version", kProducer},
        {"compiled_model_format", kCompiledModelFormat},
        {"targets", Targets()},
        {"device", device},
        {"gpus", gpus}};
    std::printf("%s\n", object.dump().c_str());
    return;
  }
  std::printf("%s, compiled models of format %d, targets: %s\n%s\n", kProducer,
              kCompiledModelFormat, absl::StrJoin(Targets(), " ").c_str(),
              device.c_str());
  for (const std::string& gpu : gpus) std::printf("%s\n", gpu.c_str());
}

}  // namespace

void AddVersion(CLI::App& app, Outcome*) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb =
      AddVerb(app, "version", "this binary and machine",
              "examples:\n  halftone version\n  halftone version --json");
  verb->add_flag("--json", *json, "one JSON object");
  verb->callback([json] { PrintVersion(*json); });
}

}  // namespace tools
}  // namespace halftone

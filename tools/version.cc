// halftone version: what this binary is and what it runs on.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/io/compiled_model.h"
#include "graph/targets/target.h"
#include "nlohmann/json.hpp"
#include "runtime/device/device.h"
#include "runtime/device/host_info.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/gpu/targets.h"
#include "tools/common/command_line.h"
#include "tools/common/json_text.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

std::vector<std::string> Targets() {
  std::vector<std::string> targets;
  for (const Target& target : halftone::Targets()) {
    if (runtime::KernelKeysOf(target.name).ok()) targets.push_back(target.name);
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

std::string ThisCpu() {
  return runtime::MakeCpuDevice(0, runtime::UsableCores())->Description();
}

void PrintJson() {
  const nlohmann::ordered_json object = {
      {"schema", 1},
      {"version", kProducer},
      {"compiled_model_format", kCompiledModelFormat},
      {"targets", Targets()},
      {"device", ThisCpu()},
      {"gpus", Gpus()}};
  Show(JsonText(object, -1), stdout);
}

}  // namespace

std::string VersionText() {
  std::vector<std::string> lines = {
      absl::StrCat(kProducer, ", compiled models of format ",
                   kCompiledModelFormat,
                   ", targets: ", absl::StrJoin(Targets(), " ")),
      ThisCpu()};
  const std::vector<std::string> gpus = Gpus();
  lines.insert(lines.end(), gpus.begin(), gpus.end());
  return absl::StrJoin(lines, "\n");
}

void AddVersion(Verb app, Outcome*) {
  auto json = std::make_shared<bool>(false);
  Verb verb = app.AddVerb("version", "this binary and machine",
                          "examples:\n"
                          "  halftone version\n"
                          "  halftone --version\n"
                          "  halftone version --json");
  verb.AddSwitch("--json", json.get(), "one JSON object");
  verb.SetRun(
      [json] { *json ? PrintJson() : Show(VersionText() + "\n", stdout); });
}

}  // namespace tools
}  // namespace halftone

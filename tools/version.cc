// halftone version: what this binary is and what it runs on.
#include <cstdio>
#include <memory>

#include "graph/io/compiled_model.h"
#include "nlohmann/json.hpp"
#include "runtime/device/device.h"
#include "runtime/device/host_info.h"
#include "tools/common/flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

void PrintVersion(bool json) {
  const std::string device =
      runtime::MakeCpuDevice(0, runtime::UsableCores())->Description();
  if (json) {
    const nlohmann::ordered_json object = {
        {"schema", 1},
        {"version", kProducer},
        {"compiled_model_format", kCompiledModelFormat},
        {"targets", {"cpu"}},
        {"device", device}};
    std::printf("%s\n", object.dump().c_str());
    return;
  }
  std::printf("%s, compiled models of format %d, targets: cpu\n%s\n", kProducer,
              kCompiledModelFormat, device.c_str());
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

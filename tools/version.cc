// halftone version: what this binary is and what it runs on.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/io/compiled_model.h"
#include "nlohmann/json.hpp"
#include "runtime/gpu/gpu_library.h"
#include "tools/common/command_line.h"
#include "tools/common/json_text.h"
#include "tools/common/show_answer.h"
#include "tools/report/machine.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

// This machine's GPUs, or why there are none; nothing without a driver.
std::vector<std::string> Gpus() {
  if (!runtime::MayHaveGpu()) return {};
  const auto here = GpusHere();
  if (!here.ok()) return {std::string(here.status().message())};
  std::vector<std::string> gpus;
  for (const absl::StatusOr<std::string>& gpu : *here) {
    gpus.push_back(gpu.ok() ? *gpu : std::string(gpu.status().message()));
  }
  return gpus;
}

void PrintJson() {
  const nlohmann::ordered_json object = {
      {"schema", 1},
      {"version", kProducer},
      {"compiled_model_format", kCompiledModelFormat},
      {"targets", TargetsOfBuild().built},
      {"device", ThisCpu()},
      {"gpus", Gpus()}};
  Show(JsonText(object, -1), stdout);
}

}  // namespace

std::string VersionText() {
  std::vector<std::string> lines = {
      absl::StrCat(kProducer, ", compiled models of format ",
                   kCompiledModelFormat,
                   ", targets: ", absl::StrJoin(TargetsOfBuild().built, " ")),
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
  verb.SetRun([json] {
    *json ? PrintJson() : ShowAnswer(VersionText() + "\n", false);
  });
}

}  // namespace tools
}  // namespace halftone

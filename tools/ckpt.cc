// halftone ckpt: lists and verifies the checkpoints of a run.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "nlohmann/json.hpp"
#include "runtime/checkpoint/checkpoint.h"
#include "tools/common/flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

using nlohmann::ordered_json;
using runtime::Checkpoint;
using runtime::CheckpointInfo;

// `path` is a run directory, its ckpt directory, or one checkpoint.
absl::StatusOr<std::vector<std::string>> Find(const std::string& path) {
  for (const std::string& directory : {path + "/ckpt", path}) {
    std::vector<std::string> found;
    for (const CheckpointInfo& info : runtime::ListCheckpoints(directory)) {
      found.push_back(info.path);
    }
    std::reverse(found.begin(), found.end());
    if (!found.empty()) return found;
  }
  const std::string name = std::filesystem::path(path).filename().string();
  if (name.rfind("step-", 0) == 0) return std::vector<std::string>{path};
  return CheckpointError(path,
                         ": holds no checkpoint; expected a run "
                         "directory or one of its ckpt/step-N");
}

int64_t Bytes(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const runtime::Tensor& tensor : checkpoint.tensors) {
    bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  return bytes;
}

// A line or object each; the first damaged one decides the exit code.
absl::Status Show(const std::string& path, bool json) {
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Find(path));
  ordered_json list = ordered_json::array();
  absl::Status damaged;
  for (const std::string& one : paths) {
    const auto read = runtime::ReadCheckpoint(one);
    damaged.Update(read.status());
    if (json) {
      ordered_json object = {{"path", one}, {"good", read.ok()}};
      if (read.ok()) {
        object["step"] = read->manifest.step;
        object["epoch"] = read->manifest.epoch;
        object["sample"] = read->manifest.sample;
        object["level"] = read->manifest.level;
        object["tensors"] = read->tensors.size();
        object["bytes"] = Bytes(*read);
      }
      if (!read.ok()) object["problem"] = std::string(read.status().message());
      list.push_back(object);
    } else if (read.ok()) {
      const runtime::Manifest& m = read->manifest;
      std::printf(
          "%s  step %s, epoch %s sample %s, %s, %zu tensors, %s: good\n",
          one.c_str(), WithCommas(m.step).c_str(),
          WithCommas(m.epoch + 1).c_str(), WithCommas(m.sample).c_str(),
          m.level.c_str(), read->tensors.size(),
          HumanBytes(Bytes(*read)).c_str());
    } else {
      std::printf("%s  damaged\n", one.c_str());
    }
  }
  if (json) {
    const ordered_json object = {{"schema", 1}, {"checkpoints", list}};
    std::printf("%s\n", object.dump(1).c_str());
  }
  return damaged;
}

}  // namespace

void AddCkpt(CLI::App& app, Outcome* outcome) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = AddVerb(app, "ckpt", "list or verify checkpoints",
                           "examples:\n"
                           "  halftone ckpt ls runs/mnist\n"
                           "  halftone ckpt verify runs/mnist/ckpt/step-115\n\n"
                           "Reads every byte; a damaged checkpoint is exit 8.");
  verb->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, bool fails) {
    CLI::App* sub = verb->add_subcommand(name, what);
    sub->add_option("path", *path, "run directory or checkpoint")->required();
    sub->add_flag("--json", *json, "one JSON object");
    sub->callback([path, json, fails, outcome] {
      const absl::Status status = Show(*path, *json);
      if (fails || status.ok()) {
        outcome->status = status;
      } else if (!std::filesystem::exists(*path)) {
        outcome->status = status;
      } else {
        std::fprintf(stderr, "warning  %s\n",
                     std::string(status.message()).c_str());
      }
    });
  };
  add("ls", "a line for each", /*fails=*/false);
  add("verify", "the same, and fail if one is damaged", /*fails=*/true);
}

}  // namespace tools
}  // namespace halftone

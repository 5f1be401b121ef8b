// halftone ckpt: lists and verifies the checkpoints of a run.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "tools/common/command_line.h"
#include "tools/common/model_path.h"
#include "tools/common/show_answer.h"
#include "tools/report/ckpt_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

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
  if (NameOfDirectory(path).rfind("step-", 0) == 0) {
    return std::vector<std::string>{path};
  }
  return CheckpointError(path,
                         ": holds no checkpoint; expected a run "
                         "directory or one of its ckpt/step-N");
}

// The first damaged one decides the exit code.
absl::Status List(const std::string& path, bool json) {
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Find(path));
  std::vector<CheckpointRow> rows = ReadCheckpoints(paths);
  // A run that goes on has removed some since they were listed.
  const auto removed = [&](const CheckpointRow& row) {
    return !row.status.ok() && row.path != path &&
           !std::filesystem::exists(row.path);
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), removed), rows.end());
  ShowAnswer(json ? CheckpointsJson(rows) : CheckpointsText(rows), json);
  absl::Status damaged;
  for (const CheckpointRow& row : rows) damaged.Update(row.status);
  return damaged;
}

}  // namespace

void AddCkpt(Verb app, Outcome* outcome) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  Verb verb = app.AddVerb("ckpt", "list or verify checkpoints",
                          "examples:\n"
                          "  halftone ckpt ls runs/mnist\n"
                          "  halftone ckpt verify runs/mnist/ckpt/step-115\n\n"
                          "Reads every byte; a damaged checkpoint is exit 8.");
  verb.RequireVerb();
  const auto add = [&](const char* name, const char* what, bool fails) {
    Verb sub = verb.AddVerb(
        name, what,
        absl::StrCat("examples:\n"
                     "  halftone ckpt ",
                     name, " runs/mnist\n  halftone ckpt ", name,
                     " runs/mnist/ckpt/step-115 --json\n\n",
                     "Reads every byte of each checkpoint: ", what, "."));
    sub.AddOption("path", path.get(), "run directory or checkpoint").Required();
    sub.AddSwitch("--json", json.get(), "one JSON object");
    sub.SetRun([path, json, fails, outcome] {
      const absl::Status status = List(*path, *json);
      if (fails || status.ok()) {
        outcome->status = status;
      } else if (!std::filesystem::exists(*path)) {
        outcome->status = status;
      } else {
        // Where there is none, a list of none.
        if (*json && !HasShownOnStdout()) {
          ShowAnswer(CheckpointsJson({}), *json);
        }
        ShowReport(absl::StrCat("warning  ", status.message(), "\n"), stderr);
      }
    });
  };
  add("ls", "a line for each", /*fails=*/false);
  add("verify", "the same, and fail if one is damaged", /*fails=*/true);
}

}  // namespace tools
}  // namespace halftone

#include "tools/common/model_path.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace tools {

namespace fs = std::filesystem;

absl::StatusOr<ModelPath> FindModel(const std::string& path) {
  std::error_code unreadable;
  if (!fs::is_directory(path, unreadable)) return ModelPath{path, "", ""};
  const auto holds_model = [&](const std::string& directory) {
    return fs::exists(directory + "/model.htc", unreadable);
  };
  if (holds_model(path)) return ModelPath{path + "/model.htc", path, ""};
  fs::path directory = fs::path(path).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();
  // Above a checkpoint is the directory of all of them, above that the run.
  const bool is_checkpoint =
      absl::StartsWith(directory.filename().string(), "step-");
  const std::string above = is_checkpoint ? "../.." : "..";
  const bool may_be = is_checkpoint || directory.filename() == "ckpt";
  if (may_be && holds_model(absl::StrCat(path, "/", above))) {
    const std::string run = (directory / above / "").lexically_normal();
    return ModelPath{run + "model.htc", run.substr(0, run.size() - 1),
                     is_checkpoint ? path : ""};
  }
  return ModelError(path,
                    ": a directory without model.htc; expected a model, a "
                    "compiled model, a run directory (--out of a run) or a "
                    "checkpoint in it (ckpt/step-N)");
}

}  // namespace tools
}  // namespace halftone

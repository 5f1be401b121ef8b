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

namespace {

fs::path WithoutSlash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

std::string NameOfDirectory(const std::string& path) {
  std::error_code unreadable;
  return WithoutSlash(fs::absolute(path, unreadable)).filename();
}

absl::StatusOr<ModelPath> FindModel(const std::string& path) {
  std::error_code unreadable;
  if (!fs::is_directory(path, unreadable)) return ModelPath{path, "", ""};
  const auto holds_model = [&](const std::string& directory) {
    return fs::exists(directory + "/model.htc", unreadable);
  };
  if (holds_model(path)) return ModelPath{path + "/model.htc", path, ""};
  // Above a checkpoint is the directory of all of them, above that the run.
  const std::string name = NameOfDirectory(path);
  const bool is_checkpoint = absl::StartsWith(name, "step-");
  const std::string above = is_checkpoint ? "../.." : "..";
  const bool may_be = is_checkpoint || name == "ckpt";
  if (may_be && holds_model(absl::StrCat(path, "/", above))) {
    const fs::path run = WithoutSlash((fs::path(path) / above));
    return ModelPath{(run / "model.htc").lexically_normal(), run,
                     is_checkpoint ? path : ""};
  }
  return ModelError(path,
                    ": a directory without model.htc; expected a model, a "
                    "compiled model, a run directory (--out of a run) or a "
                    "checkpoint in it (ckpt/step-N)");
}

}  // namespace tools
}  // namespace halftone

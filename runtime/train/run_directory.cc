#include "runtime/train/run_directory.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;
// Of the launcher, which writes them before and after the ranks.
constexpr const char* kLaunchers[] = {"logs", "failure.json"};

std::vector<std::string> EntriesOf(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (std::find(std::begin(kLaunchers), std::end(kLaunchers), name) !=
        std::end(kLaunchers)) {
      continue;
    }
    names.push_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool Exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace

absl::Status RunDirectory::RefuseIfUsed() const {
  if (Exists(path_) && !IsDirectory(path_)) {
    return UsageError("--out ", path_, ": is a file; name a directory");
  }
  const std::vector<std::string> names = EntriesOf(path_);
  if (names.empty()) return absl::OkStatus();
  const std::vector<CheckpointInfo> all = ListCheckpoints(checkpoints());
  const std::string holds =
      all.empty() ? names[0] : absl::StrCat("step ", all[0].step);
  return UsageError(path_, " holds ", holds, "; add --resume or another --out");
}

absl::Status RunDirectory::Create(const TrainConfig& config,
                                  const TuningTable& tuning) const {
  HT_RETURN_IF_ERROR(MakeDirectories(path_));
  if (!config.model_bytes.empty()) {
    HT_RETURN_IF_ERROR(
        WriteFileAtomically(path_ + "/model.htc", config.model_bytes));
  }
  HT_RETURN_IF_ERROR(
      WriteFileAtomically(path_ + "/strategy.pbtxt", config.strategy_text));
  return WriteFileAtomically(this->tuning(), tuning.Serialize());
}

absl::StatusOr<TuningTable> RunDirectory::ReadTuning() const {
  if (!Exists(tuning())) return TuningTable();
  HT_ASSIGN_OR_RETURN(const std::string content, ReadFile(tuning()));
  return TuningTable::Parse(content, tuning());
}

absl::StatusOr<Checkpoint> ReadAnyState(const std::string& path,
                                        std::vector<std::string>* said) {
  if (!Exists(path)) {
    return CheckpointError(path,
                           ": is not there; expected a run directory, a "
                           "checkpoint in it (ckpt/step-N) or a .safetensors "
                           "file");
  }
  if (!IsDirectory(path)) {
    const auto content = ReadFile(path, kMaxTensorBytes);
    if (!content.ok()) return CheckpointError(content.status().message());
    auto tensors = ParseSafetensors(*content, path);
    if (!tensors.ok()) return CheckpointError(tensors.status().message());
    Checkpoint state;
    state.tensors = *std::move(tensors);
    return state;
  }
  // One checkpoint, whichever of its files is left.
  if (Exists(path + "/manifest.json") || Exists(path + "/state.safetensors")) {
    auto checkpoint = ReadCheckpoint(path);
    if (checkpoint.ok()) return checkpoint;
    return CheckpointError(checkpoint.status().message(),
                           "; take another step, or the run directory, whose "
                           "newest sound one is taken");
  }
  std::vector<std::string> skipped;
  auto newest =
      ReadLatestCheckpoint(RunDirectory(path).checkpoints(), &skipped);
  if (newest.ok()) said->insert(said->end(), skipped.begin(), skipped.end());
  return newest;
}

}  // namespace runtime
}  // namespace halftone

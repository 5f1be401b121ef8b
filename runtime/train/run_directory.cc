#include "runtime/train/run_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/disk/directory.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/strategy/fields.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;
// Of the launcher, which writes them before and after the ranks, and of who
// holds the directory now.
constexpr const char* kNoRun[] = {"logs", "failure.json", DirectoryLock::kFile};
// What a run opens and writes on; all else of its own it replaces.
constexpr const char* kOpened[] = {"ckpt", "fetches", "metrics.jsonl"};

std::vector<std::string> EntriesOf(const std::string& path) {
  const absl::StatusOr<Directory> directory = Directory::Open(path);
  std::vector<std::string> names;
  if (directory.ok()) names = directory->Names();
  const auto of_no_run = [](const std::string& name) {
    return std::find(std::begin(kNoRun), std::end(kNoRun), name) !=
           std::end(kNoRun);
  };
  names.erase(std::remove_if(names.begin(), names.end(), of_no_run),
              names.end());
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
  HT_RETURN_IF_ERROR(RefuseIfInUse());
  return RefuseIfNotEmpty();
}

absl::Status RunDirectory::RefuseIfInUse() const {
  return DirectoryLock::Probe(path_);
}

absl::Status RunDirectory::RefuseIfNotEmpty() const {
  const std::vector<std::string> names = EntriesOf(path_);
  if (names.empty()) return absl::OkStatus();
  const std::vector<CheckpointInfo> all = ListCheckpoints(checkpoints());
  const std::string holds =
      all.empty() ? names[0] : absl::StrCat("step ", all[0].step);
  return UsageError(path_, " holds ", holds, "; add --resume or another --out");
}

absl::StatusOr<DirectoryLock> RunDirectory::Take(bool resume) const {
  if (!resume) HT_RETURN_IF_ERROR(RefuseIfUsed());
  HT_ASSIGN_OR_RETURN(DirectoryLock lock, DirectoryLock::Take(path_));
  // Again, as nobody else changes it any more.
  if (!resume) HT_RETURN_IF_ERROR(RefuseIfNotEmpty());
  HT_ASSIGN_OR_RETURN(const Directory directory, Directory::Open(path_));
  for (const char* name : kOpened) {
    if (directory.KindOf(name) != Directory::Kind::kLink) continue;
    return UsageError(directory.PathOf(name),
                      " is a link: a run writes to plain files and directories "
                      "of its own; put what it leads to in its place, or make "
                      "--out itself a link");
  }
  return lock;
}

absl::Status RunDirectory::Create(const TrainConfig& config,
                                  const TuningTable& tuning) const {
  HT_ASSIGN_OR_RETURN(const Directory directory, Directory::Make(path_));
  if (!config.model_bytes.empty()) {
    HT_RETURN_IF_ERROR(directory.Write("model.htc", config.model_bytes));
  }
  HT_RETURN_IF_ERROR(
      directory.Write("strategy.pbtxt", StrategyText(config.strategy)));
  return directory.Write("tuning.json", tuning.Serialize());
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

// Writing and rotation. Each step below is one operation on the directory, and
// a process may end after any of them: what is not whole is called .tmp-*.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/disk/directory.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/system/system_error.h"
#include "graph/base/text.h"
#include "runtime/checkpoint/checkpoint.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kMostTries = 100;

// The directory at `path`, made if it is not there; its last part is no link.
absl::StatusOr<Directory> OpenToWrite(const std::string& path) {
  std::string name;
  absl::StatusOr<Directory> parent = Directory::OpenParent(path, &name);
  if (!parent.ok()) {
    HT_RETURN_IF_ERROR(MakeDirectories(path));
    parent = Directory::OpenParent(path, &name);
  }
  HT_RETURN_IF_ERROR(parent.status());
  return parent->MakeChild(name);
}

// Of a checkpoint's directory or what is left of one: files of ours, and the
// directory if nothing else is in it. A link goes itself.
void Remove(const Directory& directory, const std::string& name) {
  if (directory.KindOf(name) != Directory::Kind::kDirectory) {
    directory.Unlink(name);
    return;
  }
  {
    const absl::StatusOr<Directory> child = directory.OpenChild(name);
    if (!child.ok()) return;
    for (const std::string& file : child->Names()) {
      if (absl::StartsWith(file, kStateFile) ||
          absl::StartsWith(file, kManifestFile)) {
        child->Unlink(file);
      }
    }
  }
  directory.RemoveEmpty(name);
}

// What a run that was killed in the midst of a checkpoint has left: a run
// directory is one run's at a time.
void RemoveTemporaries(const Directory& directory) {
  for (const std::string& name : directory.Names()) {
    if (absl::StartsWith(name, kTemporaryPrefix)) Remove(directory, name);
  }
}

// A name that nothing has.
std::string TemporaryName(const Directory& directory, int64_t step) {
  const std::string name =
      absl::StrCat(kTemporaryPrefix, ::getpid(), "-", step);
  std::string free = name;
  for (int i = 1; i < kMostTries; ++i) {
    if (directory.KindOf(free) == Directory::Kind::kNothing) break;
    free = absl::StrCat(name, "-", i);
  }
  return free;
}

absl::Status WriteNew(const Directory& directory, const std::string& name,
                      absl::string_view content) {
  HT_ASSIGN_OR_RETURN(const Descriptor file, directory.OpenNew(name));
  return WriteAndSync(file.get(), directory.PathOf(name), content);
}

absl::Status WriteInto(const Directory& directory,
                       const Checkpoint& checkpoint) {
  ManifestFile manifest;
  manifest.manifest = checkpoint.manifest;
  StateSums& sums = manifest.state;
  const std::string state = SerializeSafetensors(checkpoint.tensors);
  sums.bytes = static_cast<int64_t>(state.size());
  int64_t data = sums.bytes;
  for (const Tensor& tensor : checkpoint.tensors) {
    data -= static_cast<int64_t>(tensor.bytes.size());
    sums.tensors[tensor.name] = Hex64(StableHash(tensor.bytes));
  }
  sums.header = Hex64(StableHash(absl::string_view(state).substr(0, data)));
  HT_RETURN_IF_ERROR(WriteNew(directory, kStateFile, state));
  HT_RETURN_IF_ERROR(
      WriteNew(directory, kManifestFile, SerializeManifest(manifest)));
  directory.Sync();
  return absl::OkStatus();
}

// `temporary` becomes `name`. What had that name (a damaged one, after a
// resume that passed over it) is there until then, where the file system can
// exchange two names.
absl::Status PutInPlace(const Directory& directory,
                        const std::string& temporary, const std::string& name,
                        int64_t step) {
  if (directory.KindOf(name) == Directory::Kind::kNothing) {
    return directory.Rename(temporary, name);
  }
  if (directory.Exchange(temporary, name).ok()) {
    Remove(directory, temporary);
    return absl::OkStatus();
  }
  const std::string aside = TemporaryName(directory, step);
  HT_RETURN_IF_ERROR(directory.Rename(name, aside));
  HT_RETURN_IF_ERROR(directory.Rename(temporary, name));
  Remove(directory, aside);
  return absl::OkStatus();
}

// What changes when somebody writes to a file, or puts another one there.
std::string Identity(const std::string& path) {
  std::string identity;
  for (const char* name : {kStateFile, kManifestFile}) {
    struct stat info;
    if (::stat(absl::StrCat(path, "/", name).c_str(), &info) != 0) return "";
    absl::StrAppend(&identity, info.st_ino, " ", info.st_size, " ",
                    info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, " ",
                    info.st_ctim.tv_sec, ".", info.st_ctim.tv_nsec, " ");
  }
  return identity;
}

bool IsSound(const std::string& path, int64_t step, SoundCheckpoints* known) {
  const std::string identity = Identity(path);
  const auto found = known->find(step);
  if (found != known->end() && !identity.empty() && found->second == identity) {
    return true;
  }
  known->erase(step);
  if (!VerifyCheckpoint(path).ok()) return false;
  (*known)[step] = identity;
  return true;
}

// Only what is renamed is removed: whoever lists checkpoints sees whole ones.
void Rotate(const Directory& directory, int64_t newest, int keep, int64_t best,
            SoundCheckpoints* known) {
  std::vector<int64_t> older;
  for (const std::string& name : directory.Names()) {
    const int64_t step = StepOfName(name);
    if (step >= 0 && step < newest) older.push_back(step);
  }
  std::sort(older.rbegin(), older.rend());
  int sound = 1;  // the newest
  if (static_cast<int64_t>(older.size()) < keep) return;
  std::vector<std::string> gone;
  for (const int64_t step : older) {
    const std::string name = absl::StrCat(kStepPrefix, step);
    if (sound < keep) {
      sound += IsSound(directory.PathOf(name), step, known) ? 1 : 0;
    } else if (step != best) {
      gone.push_back(TemporaryName(directory, step));
      known->erase(step);
      if (!directory.Rename(name, gone.back()).ok()) gone.pop_back();
    }
  }
  if (gone.empty()) return;
  directory.Sync();
  for (const std::string& name : gone) Remove(directory, name);
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& path,
                             const Checkpoint& checkpoint, int keep,
                             int64_t best, SoundCheckpoints* known) {
  const absl::StatusOr<Directory> directory = OpenToWrite(path);
  if (!directory.ok()) {
    return Reclassified(directory.status(), ExitCode::kCheckpoint);
  }
  RemoveTemporaries(*directory);
  const int64_t step = checkpoint.manifest.step;
  const std::string name = absl::StrCat(kStepPrefix, step);
  const std::string temporary = TemporaryName(*directory, step);
  absl::Status status;
  {
    const absl::StatusOr<Directory> child = directory->MakeChild(temporary);
    status = child.ok() ? WriteInto(*child, checkpoint) : child.status();
  }
  if (status.ok()) status = PutInPlace(*directory, temporary, name, step);
  if (!status.ok()) {
    Remove(*directory, temporary);
    return CheckpointError(
        absl::StrReplaceAll(status.message(), {{temporary, name}}));
  }
  directory->Sync();
  SoundCheckpoints none;
  if (known == nullptr) known = &none;
  (*known)[step] = Identity(directory->PathOf(name));
  Rotate(*directory, step, std::max(keep, 1), best, known);
  return absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone

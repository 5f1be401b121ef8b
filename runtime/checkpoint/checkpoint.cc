#include "runtime/checkpoint/checkpoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/retry.h"
#include "graph/base/text.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using Json = nlohmann::json;

constexpr char kState[] = "state.safetensors";
constexpr char kManifest[] = "manifest.json";
constexpr char kPrefix[] = "step-";
constexpr char kTemporary[] = ".tmp-";

absl::Status AsCheckpointError(const absl::Status& status) {
  return status.ok() ? status : CheckpointError(status.message());
}

// The manifest is one line of JSON and a second line with its hash, so that a
// flipped bit anywhere in it is noticed.
std::string SerializeManifest(const Manifest& m, absl::string_view state) {
  Json numbers = Json::object();
  for (const auto& [key, value] : m.numbers) {
    numbers[key] = ExactDouble(value);
  }
  const Json json = {
      {"schema", 1},
      {"step", m.step},
      {"epoch", m.epoch},
      {"sample", m.sample},
      {"world_size", m.world_size},
      {"level", m.level},
      {"fingerprint", m.fingerprint},
      {"state_signature", m.state_signature},
      {"tuning_hash", m.tuning_hash},
      {"seed", m.seed},
      {"numbers", numbers},
      {"texts", m.texts},
      {"files",
       {{{"name", kState},
         {"bytes", state.size()},
         {"xxh64", Hex64(StableHash(state))}}}},
  };
  const std::string body = json.dump();
  return absl::StrCat(body, "\n", Hex64(StableHash(body)), "\n");
}

double NumberFromText(const std::string& text) {
  if (text == "nan") return std::nan("");
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) return 0;
  return value;
}

// Fields are as written: the hash over them has been verified.
Manifest FromJson(const Json& json) {
  Manifest m;
  m.step = json.at("step");
  m.epoch = json.at("epoch");
  m.sample = json.at("sample");
  m.world_size = json.at("world_size");
  m.level = json.at("level");
  m.fingerprint = json.at("fingerprint");
  m.state_signature = json.at("state_signature");
  m.tuning_hash = json.at("tuning_hash");
  m.seed = json.at("seed");
  for (const auto& [key, value] : json.at("numbers").items()) {
    m.numbers[key] = NumberFromText(value);
  }
  for (const auto& [key, value] : json.at("texts").items()) {
    m.texts[key] = value;
  }
  return m;
}

struct ReadManifestResult {
  Manifest manifest;
  int64_t bytes = 0;
  std::string hash;
};

absl::StatusOr<ReadManifestResult> ReadManifest(const std::string& path) {
  const std::string file = absl::StrCat(path, "/", kManifest);
  auto content = ReadFile(file, 16 << 20);
  if (!content.ok()) return AsCheckpointError(content.status());
  const size_t line = content->find('\n');
  const std::string body = content->substr(0, line);
  if (line == std::string::npos ||
      content->substr(line + 1) !=
          absl::StrCat(Hex64(StableHash(body)), "\n")) {
    return CheckpointError(file, ": damaged: its checksum does not fit");
  }
  ReadManifestResult result;
  try {
    const Json json = Json::parse(body);
    if (json.at("schema") != 1) {
      return CheckpointError(file, ": written by a newer version (schema ",
                             json.at("schema").dump(),
                             ", expected 1); use that version");
    }
    result.manifest = FromJson(json);
    const Json& state = json.at("files").at(0);
    result.bytes = state.at("bytes");
    result.hash = state.at("xxh64");
  } catch (const Json::exception& error) {
    return CheckpointError(file, ": not a manifest: ", error.what());
  }
  return result;
}

void SyncDirectory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

std::vector<std::string> EntriesOf(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) names.push_back(entry->d_name);
  ::closedir(dir);
  return names;
}

void RemoveCheckpoint(const std::string& path) {
  for (const char* name : {kState, kManifest}) {
    ::unlink(absl::StrCat(path, "/", name).c_str());
  }
  ::rmdir(path.c_str());
}

// What a run that was killed in the midst of a checkpoint has left: a run
// directory is one run's at a time.
void RemoveTemporaries(const std::string& directory) {
  for (const std::string& name : EntriesOf(directory)) {
    if (!absl::StartsWith(name, kTemporary)) continue;
    const std::string path = absl::StrCat(directory, "/", name);
    for (const std::string& file : EntriesOf(path)) {
      ::unlink(absl::StrCat(path, "/", file).c_str());
    }
    ::rmdir(path.c_str());
  }
}

absl::Status WriteInto(const std::string& path, const Checkpoint& checkpoint) {
  HT_RETURN_IF_ERROR(MakeDirectories(path));
  const std::string state = SerializeSafetensors(checkpoint.tensors);
  HT_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(path, "/", kState), state));
  return WriteFileAtomically(absl::StrCat(path, "/", kManifest),
                             SerializeManifest(checkpoint.manifest, state));
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& directory,
                             const Checkpoint& checkpoint, int keep,
                             int64_t best) {
  HT_RETURN_IF_ERROR(AsCheckpointError(MakeDirectories(directory)));
  const std::string path =
      absl::StrCat(directory, "/", kPrefix, checkpoint.manifest.step);
  const std::string temporary = absl::StrCat(
      directory, "/", kTemporary, ::getpid(), "-", checkpoint.manifest.step);
  RemoveTemporaries(directory);
  absl::Status status = WriteInto(temporary, checkpoint);
  if (status.ok()) {
    SyncDirectory(temporary);
    RemoveCheckpoint(path);  // the same step again, after a resume
    if (Retried([&] { return ::rename(temporary.c_str(), path.c_str()); }) !=
        0) {
      status = ModelError(path, ": cannot rename: ", std::strerror(errno));
    }
  }
  if (!status.ok()) {
    RemoveCheckpoint(temporary);
    return CheckpointError(
        absl::StrReplaceAll(status.message(), {{temporary, path}}));
  }
  SyncDirectory(directory);
  const std::vector<CheckpointInfo> all = ListCheckpoints(directory);
  for (size_t i = std::max(keep, 1); i < all.size(); ++i) {
    if (all[i].step != best) RemoveCheckpoint(all[i].path);
  }
  return absl::OkStatus();
}

std::vector<CheckpointInfo> ListCheckpoints(const std::string& directory) {
  std::vector<CheckpointInfo> checkpoints;
  for (const std::string& name : EntriesOf(directory)) {
    CheckpointInfo info;
    if (!absl::StartsWith(name, kPrefix) ||
        !absl::SimpleAtoi(name.substr(sizeof(kPrefix) - 1), &info.step)) {
      continue;
    }
    info.path = absl::StrCat(directory, "/", name);
    const auto manifest = ReadManifest(info.path);
    info.complete = manifest.ok();
    if (!manifest.ok()) info.problem = std::string(manifest.status().message());
    checkpoints.push_back(std::move(info));
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const CheckpointInfo& a, const CheckpointInfo& b) {
              return a.step > b.step;
            });
  return checkpoints;
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path) {
  HT_ASSIGN_OR_RETURN(ReadManifestResult manifest, ReadManifest(path));
  const std::string file = absl::StrCat(path, "/", kState);
  // Not a byte is read of a file that is of another size.
  struct stat info;
  if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
      info.st_size != manifest.bytes) {
    return CheckpointError(file, ": damaged: expected ", manifest.bytes,
                           " bytes, found ", info.st_size);
  }
  auto content = ReadFile(file, manifest.bytes);
  if (!content.ok()) return AsCheckpointError(content.status());
  if (Hex64(StableHash(*content)) != manifest.hash) {
    return CheckpointError(file, ": damaged: its checksum does not fit");
  }
  auto tensors = ParseSafetensors(*content, file);
  if (!tensors.ok()) return AsCheckpointError(tensors.status());
  return Checkpoint{std::move(manifest.manifest), std::move(*tensors)};
}

absl::StatusOr<Checkpoint> ReadLatestCheckpoint(
    const std::string& directory, std::vector<std::string>* skipped) {
  std::vector<std::string> problems;
  for (const CheckpointInfo& info : ListCheckpoints(directory)) {
    auto checkpoint = ReadCheckpoint(info.path);
    if (checkpoint.ok()) {
      *skipped = problems;
      return checkpoint;
    }
    problems.emplace_back(checkpoint.status().message());
  }
  *skipped = problems;
  if (problems.empty()) {
    return CheckpointError(directory, ": holds no checkpoint (step-N); name ",
                           "a run directory or one of its ckpt/step-N");
  }
  return CheckpointError(
      directory, ": holds no sound checkpoint: ", absl::StrJoin(problems, "; "),
      "; bring one back from a copy, or start anew with ", "another --out");
}

}  // namespace runtime
}  // namespace halftone

#include "runtime/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/disk/directory.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMostManifestBytes = 64 << 20;
constexpr size_t kMostNamed = 5;  // damaged tensors
constexpr int kMostLists = 10;

absl::Status AsCheckpointError(const absl::Status& status) {
  return Reclassified(status, ExitCode::kCheckpoint);
}

absl::StatusOr<ManifestFile> ReadManifest(const std::string& path) {
  const std::string file = absl::StrCat(path, "/", kManifestFile);
  const auto content = ReadFile(file, kMostManifestBytes);
  if (!content.ok()) return AsCheckpointError(content.status());
  return ParseManifest(*content, file);
}

// The file with the tensors, of which only what is asked for is read.
class StateFile {
 public:
  // Errors: kCheckpoint; not a byte is read of a file of another size.
  static absl::StatusOr<StateFile> Open(const std::string& file,
                                        int64_t bytes) {
    StateFile state;
    state.file_ = file;
    state.bytes_ = bytes;
    // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
    state.fd_ = Descriptor(Retried([&] {
      return ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }));
    struct stat info;
    if (state.fd_.get() < 0 || ::fstat(state.fd_.get(), &info) != 0) {
      return SystemError(ExitCode::kCheckpoint, errno,
                         absl::StrCat(file, ": cannot open"));
    }
    if (!S_ISREG(info.st_mode)) {
      return CheckpointError(
          file, ": expected a file, found ",
          S_ISDIR(info.st_mode) ? "a directory" : "a device");
    }
    if (info.st_size != bytes) {
      return CheckpointError(file, ": damaged: expected ", bytes,
                             " bytes, found ", info.st_size);
    }
    return state;
  }

  absl::StatusOr<std::string> Read(int64_t begin, int64_t size) const {
    std::string content(size, '\0');
    int64_t done = 0;
    while (done < size) {
      const ssize_t n = ::pread(fd_.get(), &content[done], size - done,
                                static_cast<off_t>(begin + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        return SystemError(ExitCode::kCheckpoint, errno,
                           absl::StrCat(file_, ": cannot read"));
      }
      if (n == 0) {
        return CheckpointError(file_, ": damaged: expected ", bytes_,
                               " bytes, found ", begin + done);
      }
      done += n;
    }
    return content;
  }

  absl::Status Damaged(absl::string_view what) const {
    return CheckpointError(file_, ": damaged: ", what);
  }
  const std::string& file() const { return file_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::string file_;
  int64_t bytes_ = 0;
  Descriptor fd_;
};

using Take = std::function<void(TensorHead head, std::string bytes)>;

// Schema 1: one checksum of all.
absl::Status ReadWhole(const StateFile& state, const StateSums& sums,
                       const Take& take) {
  HT_ASSIGN_OR_RETURN(const std::string content, state.Read(0, state.bytes()));
  if (Hex64(StableHash(content)) != sums.whole) {
    return state.Damaged("its checksum does not fit");
  }
  auto tensors = ParseSafetensors(content, state.file());
  if (!tensors.ok()) return AsCheckpointError(tensors.status());
  for (Tensor& tensor : *tensors) {
    take({std::move(tensor.name), tensor.dtype, std::move(tensor.dims)},
         std::move(tensor.bytes));
  }
  return absl::OkStatus();
}

// The header, once its checksum fits; `*data` is where the data begins.
absl::StatusOr<std::vector<TensorHead>> ReadHeads(const StateFile& state,
                                                  const StateSums& sums,
                                                  int64_t* data) {
  HT_ASSIGN_OR_RETURN(
      const std::string prefix,
      state.Read(0, std::min(kSafetensorsPrefix, state.bytes())));
  const auto size = SafetensorsHeaderBytes(prefix, state.bytes(), state.file());
  if (!size.ok()) return state.Damaged("its header does not fit its size");
  *data = kSafetensorsPrefix + *size;
  HT_ASSIGN_OR_RETURN(const std::string bytes, state.Read(0, *data));
  if (Hex64(StableHash(bytes)) != sums.header) {
    return state.Damaged("the checksum of its header does not fit");
  }
  auto heads = ParseSafetensorsHeader(
      absl::string_view(bytes).substr(kSafetensorsPrefix),
      state.bytes() - *data, state.file());
  if (!heads.ok()) return AsCheckpointError(heads.status());
  return heads;
}

absl::Status ReadTensors(const StateFile& state, const StateSums& sums,
                         const Take& take) {
  int64_t data = 0;
  HT_ASSIGN_OR_RETURN(std::vector<TensorHead> heads,
                      ReadHeads(state, sums, &data));
  std::vector<std::string> damaged;
  size_t known = 0;
  for (TensorHead& head : heads) {
    HT_ASSIGN_OR_RETURN(std::string bytes,
                        state.Read(data + head.begin, head.end - head.begin));
    const auto sum = sums.tensors.find(head.name);
    known += sum != sums.tensors.end() ? 1 : 0;
    if (sum == sums.tensors.end() || Hex64(StableHash(bytes)) != sum->second) {
      damaged.push_back(head.name);
    } else {
      take(std::move(head), std::move(bytes));
    }
  }
  if (known != sums.tensors.size()) {
    return state.Damaged("it lacks tensors that its manifest names");
  }
  if (damaged.empty()) return absl::OkStatus();
  const size_t more = damaged.size() - std::min(damaged.size(), kMostNamed);
  const bool several = damaged.size() > 1;
  damaged.resize(damaged.size() - more);
  return state.Damaged(absl::StrCat(
      several ? "tensors " : "tensor ", absl::StrJoin(damaged, ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : "", ": ",
      several ? "their checksums do not fit" : "its checksum does not fit"));
}

absl::StatusOr<Manifest> Read(const std::string& path, const Take& take) {
  HT_ASSIGN_OR_RETURN(ManifestFile manifest, ReadManifest(path));
  HT_ASSIGN_OR_RETURN(const StateFile state,
                      StateFile::Open(absl::StrCat(path, "/", kStateFile),
                                      manifest.state.bytes));
  HT_RETURN_IF_ERROR((manifest.state.whole.empty() ? ReadTensors : ReadWhole)(
      state, manifest.state, take));
  return std::move(manifest.manifest);
}

}  // namespace

int64_t StepOfName(const std::string& name) {
  absl::string_view number = name;
  int64_t step = -1;
  // Only as we write it: "step-05" and "step- 5" are somebody else's.
  if (!absl::ConsumePrefix(&number, kStepPrefix) ||
      !absl::SimpleAtoi(number, &step) || absl::StrCat(step) != number) {
    return -1;
  }
  return std::max<int64_t>(step, -1);
}

std::vector<CheckpointInfo> ListCheckpoints(const std::string& directory) {
  std::vector<CheckpointInfo> checkpoints;
  const absl::StatusOr<Directory> opened = Directory::Open(directory);
  if (!opened.ok()) return checkpoints;
  for (const std::string& name : opened->Names()) {
    CheckpointInfo info;
    info.step = StepOfName(name);
    if (info.step < 0) continue;
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
  Checkpoint checkpoint;
  HT_ASSIGN_OR_RETURN(
      checkpoint.manifest, Read(path, [&](TensorHead head, std::string bytes) {
        checkpoint.tensors.push_back({std::move(head.name), head.dtype,
                                      std::move(head.dims), std::move(bytes)});
      }));
  return checkpoint;
}

absl::StatusOr<Manifest> VerifyCheckpoint(const std::string& path) {
  return Read(path, [](TensorHead, std::string) {});
}

absl::StatusOr<Checkpoint> ReadLatestCheckpoint(
    const std::string& directory, std::vector<std::string>* skipped) {
  // A run that goes on may remove all that were listed before one is opened.
  for (int tries = 0; tries < kMostLists; ++tries) {
    skipped->clear();
    bool removed = false;
    for (const CheckpointInfo& info : ListCheckpoints(directory)) {
      auto checkpoint = ReadCheckpoint(info.path);
      if (checkpoint.ok()) return checkpoint;
      if (::access(info.path.c_str(), F_OK) != 0) {
        removed = true;
      } else {
        skipped->emplace_back(checkpoint.status().message());
      }
    }
    if (!removed) break;
  }
  if (skipped->empty()) {
    return CheckpointError(directory, ": holds no checkpoint (step-N); name ",
                           "a run directory or one of its ckpt/step-N");
  }
  return CheckpointError(
      directory, ": holds no sound checkpoint: ", absl::StrJoin(*skipped, "; "),
      "; bring one back from a copy, or start anew with ", "another --out");
}

}  // namespace runtime
}  // namespace halftone

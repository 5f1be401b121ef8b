// Checkpoints: safetensors beside a checksummed manifest, written to a
// temporary directory, fsynced and renamed; any flipped bit is noticed.
#ifndef HALFTONE_RUNTIME_CHECKPOINT_CHECKPOINT_H_
#define HALFTONE_RUNTIME_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"

namespace halftone {
namespace runtime {

struct Checkpoint {
  Manifest manifest;
  std::vector<Tensor> tensors;
};

// Checkpoints that were found sound, by step: what their files were then, so
// that a run reads each only once, unless it changes.
using SoundCheckpoints = std::map<int64_t, std::string>;

// Writes `directory`/step-<N>; the directory itself is made, but is no link.
// Errors are kCheckpoint; a failed write leaves no trace and all older
// checkpoints as they were. Whenever the process ends, every step-<N> there is
// whole, and `keep` of them are sound if they were.
//
// Then older ones go: this one and the `keep` - 1 newest sound ones before it
// stay, so does that of step `best` (-1: none), and so do newer ones, which a
// run leaves that went back behind them. A damaged one does not count, and goes
// with the sound ones that are as old.
absl::Status WriteCheckpoint(const std::string& directory,
                             const Checkpoint& checkpoint, int keep,
                             int64_t best = -1,
                             SoundCheckpoints* known = nullptr);

struct CheckpointInfo {
  std::string path;
  int64_t step = 0;
  bool complete = false;
  std::string problem;  // of a damaged one
};
// By falling step; does not read tensors.
std::vector<CheckpointInfo> ListCheckpoints(const std::string& directory);
// The step of a checkpoint's directory by its name, "step-69"; -1: it is none.
int64_t StepOfName(const std::string& name);

// Verify all checksums. Errors (kCheckpoint) name the damaged file and, where
// its header is sound, the damaged tensors. Verifying holds one tensor at a
// time, reading holds the state once.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path);
absl::StatusOr<Manifest> VerifyCheckpoint(const std::string& path);
// The newest one that verifies; `*skipped` gets a line per damaged newer one.
// kCheckpoint if there is none.
absl::StatusOr<Checkpoint> ReadLatestCheckpoint(
    const std::string& directory, std::vector<std::string>* skipped);

// The files of a checkpoint's directory.
inline constexpr char kStateFile[] = "state.safetensors";
inline constexpr char kManifestFile[] = "manifest.json";
// Before a name: what is being written or removed, and is no checkpoint.
inline constexpr char kStepPrefix[] = "step-";
inline constexpr char kTemporaryPrefix[] = ".tmp-";

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_CHECKPOINT_CHECKPOINT_H_

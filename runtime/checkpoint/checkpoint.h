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
#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"

namespace halftone {
namespace runtime {

struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;
  std::string bytes;  // logical row-major, little-endian
};

// The safetensors format (header of sorted JSON, then data). Reading checks
// every offset against the file; caps the header at 100 MB. Errors: kModel.
std::string SerializeSafetensors(absl::Span<const Tensor> tensors);
absl::StatusOr<std::vector<Tensor>> ParseSafetensors(
    absl::string_view content, absl::string_view file);

// Element-wise conversion between float dtypes (f32 f16 bf16 f64), rounding
// to nearest even once.
absl::StatusOr<Tensor> ConvertTensor(const Tensor& tensor, DType to);

// Everything that a resumed run needs besides the tensors; all plain data.
struct Manifest {
  int64_t step = 0;            // attempted steps so far
  int64_t epoch = 0;           // next sample's epoch, and its position there
  int64_t sample = 0;
  int world_size = 1;
  std::string level;           // "O1"
  std::string fingerprint;     // of the compiled program
  std::string state_signature;
  std::string tuning_hash;
  int64_t seed = 0;
  // Free-form numbers that the trainer keeps (partial sums in f64, best
  // epoch ...): exact round trip.
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};

struct Checkpoint {
  Manifest manifest;
  std::vector<Tensor> tensors;
};

// Writes `directory`/step-<N>. Errors are kCheckpoint; a failed write leaves
// no trace and all older checkpoints as they were. Keeps the newest `keep`,
// and that of step `best` (-1: none) however old it is.
absl::Status WriteCheckpoint(const std::string& directory,
                             const Checkpoint& checkpoint, int keep,
                             int64_t best = -1);

struct CheckpointInfo {
  std::string path;
  int64_t step = 0;
  bool complete = false;
  std::string problem;  // of a damaged one
};
// By falling step; does not read tensors.
std::vector<CheckpointInfo> ListCheckpoints(const std::string& directory);
// Verifies all checksums. Errors (kCheckpoint) name the damaged file.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path);
// The newest one that verifies; `*skipped` gets a line per damaged newer one.
// kCheckpoint if there is none.
absl::StatusOr<Checkpoint> ReadLatestCheckpoint(
    const std::string& directory, std::vector<std::string>* skipped);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_CHECKPOINT_CHECKPOINT_H_

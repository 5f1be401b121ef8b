// What a checkpoint holds beside its tensors, and the file it stands in: a line
// of JSON and a second one with its hash, so that a flipped bit anywhere in it
// is noticed.
#ifndef HALFTONE_RUNTIME_CHECKPOINT_MANIFEST_H_
#define HALFTONE_RUNTIME_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// Readers accept this version and the one before.
inline constexpr int kManifestSchema = 2;

// Everything that a resumed run needs besides the tensors; all plain data.
struct Manifest {
  int64_t step = 0;   // attempted steps so far
  int64_t epoch = 0;  // next sample's epoch, and its position there
  int64_t sample = 0;
  int64_t world_size = 1;
  std::string level;        // "O1"
  std::string fingerprint;  // of the compiled program
  std::string state_signature;
  std::string tuning_hash;
  int64_t seed = 0;
  // Free-form numbers that the trainer keeps (partial sums in f64, best
  // epoch ...): exact round trip.
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};

// What the file with the tensors must be: XXH64 in 16 hexadecimal digits, of
// the prefix and header and of each tensor's bytes. Schema 1 had one of the
// whole file.
struct StateSums {
  int64_t bytes = 0;
  std::string whole;  // schema 1; empty: the others
  std::string header;
  std::map<std::string, std::string> tensors;
};

struct ManifestFile {
  Manifest manifest;
  StateSums state;
};

std::string SerializeManifest(const ManifestFile& file);
// Every field is of its type and range. `file` names it in errors
// (kCheckpoint).
absl::StatusOr<ManifestFile> ParseManifest(absl::string_view content,
                                           const std::string& file);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_CHECKPOINT_MANIFEST_H_

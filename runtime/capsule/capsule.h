// A capsule: a folder with all that a step has read, so that it can be run
// again elsewhere: the program, the cells that forward, backward and the finite
// check read, or that such cells are made of, what each rank was fed, and a
// checksummed manifest.
#ifndef HALFTONE_RUNTIME_CAPSULE_CAPSULE_H_
#define HALFTONE_RUNTIME_CAPSULE_CAPSULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/npz.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

// 1: low copies in place of parameters, and of ranks that differ in their
// cells (dist.localsgd) rank 0's alone.
inline constexpr int64_t kCapsuleSchema = 2;

// What the manifest says beside the files' checksums.
struct CapsuleFacts {
  int64_t schema = kCapsuleSchema;  // that it was read with
  int64_t step = 0;                 // attempted steps, this one included
  std::string entry, why;
  int64_t world_size = 1, threads = 1;  // threads: compute threads of a rank
  bool deterministic = true;
  // What the run has named, as Executor::FirstNonFinite does; empty: nothing.
  NonFinite found;
};

struct Capsule {
  CapsuleFacts facts;
  std::string model;   // a compiled model (.htc)
  std::string tuning;  // the table that the run had; empty: none
  // Those that CellsToReplay names, of cells in which ranks differ each rank's
  // (NameOfRank).
  std::vector<Tensor> cells;
  // What a rank was fed, and kSymbols, what the entry's symbols stand for
  // there.
  using Fed = std::vector<NpzArray>;
  // By rank: that of the step's micro-batches, of which the last is of the
  // facts' entry and those before it are of kAccumulateEntry.
  std::vector<std::vector<Fed>> ranks;
};
inline constexpr char kSymbols[] = "@symbols";
inline constexpr char kCapsules[] = "capsules";  // of a run directory
inline constexpr char kCapsuleManifest[] = "capsule.json";

// Those that forward, backward, loss scaling and communication of a step and
// its micro-batches read, and which the step did not begin with zeros in. In
// place of one that is made of another (entry `derive`) that other: a step
// writes low copies, too, and a rejected one makes them of what it has found.
std::vector<CellId> CellsToReplay(const Program& program);

// Of the step that the executor has executed last. All ranks call it together;
// rank 0 gets the capsule with all that is known here, the others an empty one.
absl::StatusOr<Capsule> TakeCapsule(Executor& executor);

// `directory`/step-N; a capsule of that name is replaced. Errors are kModel.
absl::Status WriteCapsule(const std::string& directory, const Capsule& capsule);

// Errors (kCheckpoint) name the file: missing, damaged by its checksum, not
// what a capsule has.
absl::StatusOr<Capsule> ReadCapsule(const std::string& path);

// What a rank was fed, in a form that Execute takes; `fed` outlives it. A
// feed of the entry that is not there is left out.
std::vector<FeedData> FeedsOf(const Entry& entry, const Capsule::Fed& fed);
SymbolValues SymbolsOf(const Capsule::Fed& fed);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_CAPSULE_CAPSULE_H_

// The verifier proves what every pass may assume and what the runtime relies
// on; it reports all violations at once.
#ifndef HALFTONE_GRAPH_VERIFY_VERIFY_H_
#define HALFTONE_GRAPH_VERIFY_VERIFY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/program.h"
#include "graph/verify/memo.h"

namespace halftone {

// How far the pipeline has come: later phases promise more.
enum class Phase : int {
  kSource = 0,     // as read: forward only, no decisions
  kPrecision = 1,  // every forward op decided, casts inserted
  kBackward = 2,   // every live op has a reason
  kParallel = 3,   // each trainable parameter's gradient reduced exactly once
  kUpdate = 4,     // every trainable cell has a guarded commit
  kLowered = 5,    // no split-only op is left
};

struct VerifyOptions {
  Phase phase = Phase::kSource;
  // Of earlier verifications of this very program; may be null.
  VerifyMemo* memo = nullptr;
};

// With a memo, only the ops that were edited since (Block::edit) are looked at
// again, and what hangs on them: their outputs, the readers of what changed.
// The use lists, the tables of names and the counts by schema, which blocks
// keep themselves, are compared without one, and of the ops and bodies of a
// kind one is looked at. A fusion's body is part of its op.
//
// Rules of every phase: definitions before uses, use lists and names agree,
// slots' arity, dtypes and inferred types hold, at most one commit per cell
// and type-equal, per-phase rules; and in `train` the guard: a commit to a
// cell of class `applied` comes from an op whose schema is Guarded and whose
// FoundInf slot reads the entry's one check_finite. Returns an error of class
// kModel at kSource (the model is wrong) and kCompilerBug later, listing up
// to 20 violations, one per line, each with entry, op, slot and line.
absl::Status Verify(const Program& program, const VerifyOptions& options);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_VERIFY_VERIFY_H_

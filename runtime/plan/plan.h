// A Plan: one entry of a compiled program bound to dims, target, world and
// rank, as typed arenas with offsets and a flat list of steps. It is a pure
// function of (program, dim binding, target, world, rank, tuning table) and the
// version of the target's libraries: while planning nothing is timed, and a
// library is asked only what it does on the target, not on this machine.
#ifndef HALFTONE_RUNTIME_PLAN_PLAN_H_
#define HALFTONE_RUNTIME_PLAN_PLAN_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "kernels/kernel_registry.h"
#include "runtime/plan/tuning_table.h"

namespace halftone {
namespace runtime {

enum class ArenaKind : uint8_t {
  kState,  // cells; shared by all plans of a program
  kFeed,   // fixed slots of the feeds
  // Values and kernels' scratch, by liveness; of one rank the groups of
  // collectives, too.
  kTemporary,
  // Contiguous groups of collectives, one of its own per entry: it is zeroed
  // once, so that the padding between members stays zero.
  kCommunication,
  // Results of the entry, side by side (one copy to the host); one arena per
  // entry, zeroed once, because totals are reduced where they are read.
  kResult,
  // Where the next step's feeds wait while this one reads its own; empty
  // where the device's memory is the host's.
  kStaging,
};
inline constexpr int kArenas = 6;
using ArenaBytes = std::array<int64_t, kArenas>;  // by kind
int64_t TotalOf(const ArenaBytes& bytes);
absl::string_view Name(ArenaKind kind);

struct Slice {
  ArenaKind arena = ArenaKind::kTemporary;
  int64_t offset = 0;
  int64_t bytes = 0;
};

enum class StreamKind : uint8_t { kCompute, kCommunicate };

// One piece of enqueued work.
struct Step {
  enum class Kind : uint8_t {
    kKernel,     // `op` through `candidate`
    kAllReduce,  // in place over `outputs[0]`, padding included
    kBroadcast,  // likewise
    kAllGather,  // likewise: `count` elements of each rank, by rank
    // Of each of `outputs`, a tensor of one shard per rank, by rank: all ranks'
    // summed, this rank's shard is there afterwards.
    kReduceScatter,
    kGatherShards,  // likewise: all shards are there afterwards
    kCopy,          // inputs[0] -> outputs[0]
    kZero,          // fills outputs[0]
  };
  Kind kind = Kind::kKernel;
  StreamKind stream = StreamKind::kCompute;
  std::string name;  // the op's name, for messages and traces
  Role role = Role::kForward;
  // kKernel only. The block outlives the plan (a fusion's body is planned
  // through its own block where no kernel supports it).
  const Block* block = nullptr;
  OpId op;
  const kernels::Candidate* candidate = nullptr;
  std::vector<Slice> inputs, outputs;  // empty slice: shape-only or absent
  Slice workspace;
  // Collectives: elements (of one rank, where they are gathered) and dtype; the
  // sum is multiplied by pre_scale before it is made (1: not at all).
  int64_t count = 0;
  DType dtype{};
  float pre_scale = 1;
  int root = 0;
  // Cross-stream order: events this step waits for and records, by number.
  std::vector<int> waits;
  int records = -1;
};

absl::string_view Name(Step::Kind kind);  // "kernel", "all_reduce", ...
bool IsCollective(Step::Kind kind);       // handed to the communicator

// Where a value lies and how long: for dumps, memory reports and tests.
struct PlannedValue {
  std::string name;
  kernels::TensorDesc desc;
  Slice slice;
  int first_step = 0, last_step = 0;
};

struct PlannedFeed {
  std::string name;
  kernels::TensorDesc desc;
  Slice slice;
};
struct PlannedResult {
  std::string name;
  kernels::TensorDesc desc;
  Slice slice;           // in kResult
  bool fetched = false;  // not wanted of each step
};

// A fusion whose body is planned op by op.
struct InlinedFusion {
  std::string name, pattern;
  std::string refusal;  // why no kernel takes it; empty: none says so
  const Block* body = nullptr;
};

// Offsets of all cells and constants in the state arena: the same for every
// plan.
struct StateLayout {
  std::vector<Slice> cells;      // by CellId
  std::vector<Slice> constants;  // by ConstantId
  // Cells of class `always` come first: what a rejected step changes.
  int64_t always_bytes = 0;
  // Then those that are the same on all ranks; sharded ones come last.
  int64_t common_bytes = 0;
  int64_t bytes = 0;
  int64_t shards = 1;
};
// `shards`: ranks that sharded cells are spread over.
StateLayout LayOutState(const Program& program, int64_t shards = 1);
// Of them what only updates need: slots, averages, and parameters beside low
// cells that forward and backward read.
int64_t OptimizerBytes(const Program& program, const StateLayout& layout);

struct PlanRequest {
  const Program* program = nullptr;
  std::string entry;
  SymbolValues symbols{};  // symbol 0: samples on this rank
  kernels::BindContext bind;
  bool stage_feeds = false;  // for a device that works asynchronously
  // Values to keep and return besides the entry's results: of each step, and
  // of some steps alone (--fetch), which may be results of the entry, too.
  std::vector<std::string> kept, fetches;
};

struct Plan {
  std::string entry;
  SymbolValues symbols{};
  int world_size = 1;
  std::vector<Step> steps;
  ArenaBytes arena_bytes{};
  std::vector<PlannedFeed> feeds;
  // Those that are wanted of each step first, in the arena, too.
  std::vector<PlannedResult> results;
  std::vector<PlannedValue> values;
  std::vector<InlinedFusion> inlined;
  // Peak bytes on the device = the sum of the arenas; exact when every step's
  // candidate is in the tuning table or has one candidate only.
  int64_t peak_bytes() const;
};

// Errors: an op without a kernel (kModel), a fetch of an unknown or folded
// value (kUsage, nearest names).
absl::StatusOr<Plan> MakePlan(const PlanRequest& request,
                              const kernels::KernelRegistry& kernels,
                              const StateLayout& state,
                              const TuningTable& tuning);

// Its arena_bytes alone, with the same errors, for less time and memory.
absl::StatusOr<ArenaBytes> PlannedArenas(const PlanRequest& request,
                                         const kernels::KernelRegistry& kernels,
                                         const StateLayout& state,
                                         const TuningTable& tuning);

// One line per step and arena, deterministic.
std::string Print(const Plan& plan);
// The `n` largest buffers alive at the peak, "name bytes": what to say when
// a plan does not fit.
std::vector<std::string> LargestBuffers(const Plan& plan, int n);
// Of a plan's collectives (kind, bytes, dtype in order): equal on all ranks.
uint64_t CollectiveHash(const Plan& plan);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PLAN_PLAN_H_

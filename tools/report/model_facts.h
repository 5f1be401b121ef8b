// What several reports say about a compiled model, counted once.
#ifndef HALFTONE_TOOLS_REPORT_MODEL_FACTS_H_
#define HALFTONE_TOOLS_REPORT_MODEL_FACTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "kernels/kernel_registry.h"
#include "runtime/plan/plan.h"
#include "runtime/train/run_memory.h"

namespace halftone {
namespace tools {

// Bytes of the cells of a program by what they are for. While FP32 copies are
// kept, `copies` are those parameters that have a low cell beside them.
struct StateBytes {
  int64_t copies = 0, parameters = 0, low_cells = 0, slots = 0;
  int64_t statistics = 0, others = 0;  // others: scaler and clocks
  std::string slot_names;              // "velocity"
  int64_t total() const {
    return copies + parameters + low_cells + slots + statistics + others;
  }
};

struct OpsOfReason {
  std::string reason;
  int count = 0;
  std::vector<std::string> first;  // names of at most kMost
  static constexpr int kMost = 6;
};

struct ModelFacts {
  const CompiledModel* model = nullptr;
  std::string low;  // "f16", "bf16"
  bool trains = false;
  std::string entry;  // "train" or "eval": whose ops, casts and peak these are
  // The model's own ops, as insertion left them; those in f32 by reason.
  int ops = 0;
  int low_ops = 0;
  std::vector<OpsOfReason> f32_ops;
  // Casts by direction and by fate.
  int down = 0, up = 0;
  int standalone = 0, folded = 0, cell = 0;
  int64_t cast_bytes = 0;        // per step, of all
  int64_t standalone_bytes = 0;  // per step
  // Gradients and what reduces them.
  int gradients = 0;
  int64_t gradient_values = 0;
  std::map<std::string, int64_t> bucket_bytes;  // by dtype
  int totals = 0, counts = 0, statistics_reductions = 0;
  StateBytes state;
  // Of a run, or of eval alone if that is the entry, with `samples` samples on
  // one rank of one thread; -1: the target's kernels are not here.
  int64_t samples = 1;
  int64_t peak_bytes = -1;
};
// `samples` <= 0: the strategy's batch, else 1. `entry`: that of the model's
// report (passes::CompileFlags::report_entry).
absl::StatusOr<ModelFacts> FactsOf(const CompiledModel& model,
                                   int64_t samples = 0,
                                   const std::string& entry = "");

// The rows of the model's own ops, as long as `model` lives.
std::vector<const proto::OpRow*> OwnOps(const CompiledModel& model);

// The types of the model's own ops by name, as its file has them: lists name
// those. A pass may have put another op in its place (scale_bias in that of a
// batch_norm).
using WrittenTypes = absl::flat_hash_map<std::string, std::string>;
WrittenTypes WrittenTypesOf(const CompiledModel& model);

// The plan of an entry for one of `ranks` ranks that runs it with so many
// samples at once.
absl::StatusOr<runtime::Plan> PlanFor(const CompiledModel& model,
                                      const std::string& entry, int64_t samples,
                                      int ranks, int threads = 1);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_MODEL_FACTS_H_

// The one entry point of the compiler.
#ifndef HALFTONE_PASSES_COMPILE_H_
#define HALFTONE_PASSES_COMPILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "passes/kernel_set.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

// What train of a compiled program needs in all on one rank with so many
// samples. Plans are made elsewhere: who compiles brings what asks for one.
using PlannedPeak = std::function<absl::StatusOr<int64_t>(
    const Program& program, int64_t samples)>;

struct CompileFlags {
  bool verify_each = false;
  std::string dump_dir;    // NNN.<pass>.txt after each pass; empty: none
  std::string dump_after;  // regular expression over pass names; empty: all
  // "train" or "eval": the entry whose ops and casts the report has. Empty:
  // train, or eval where nothing trains. Without an optimizer train is its
  // forward part as insertion leaves it; what became of its casts is said of
  // eval, which has the same ones.
  std::string report_entry;
  std::vector<std::string> taps;  // values of train to keep, see keep_taps.h
  // Nothing but an eval entry that makes these (see keep_outputs.h); empty:
  // all that the model and its strategy ask for.
  std::vector<std::string> outputs;
  PlannedPeak planned_peak;  // needed where train.memory_budget is set
  std::string planned_rank = "one rank";  // whose peak that is, for messages
  // Shown the program as lowering finds it: what `taps` may name.
  std::function<void(const Program& program)> before_lowering;
};

// The options as they are for this program: without a loss there is nothing
// to train. Errors: a group of the optimizer that matches no parameter.
absl::StatusOr<Options> OptionsFor(const Program& program,
                                   const Options& options);

// Rewrites the model's forward program into a compiled model, which keeps the
// source.
// Errors: kModel for what model or strategy ask wrongly, kCompilerBug (with
// the pass's name) for a pass that broke a rule.
absl::StatusOr<CompiledModel> Compile(ModelFile source, const Options& options,
                                      const KernelSet& kernels,
                                      const CompileFlags& flags);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_COMPILE_H_

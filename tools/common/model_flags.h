// Flags and loading that several verbs share: a model of any kind, the
// strategy with its overrides, the target's kernels.
#ifndef HALFTONE_TOOLS_COMMON_MODEL_FLAGS_H_
#define HALFTONE_TOOLS_COMMON_MODEL_FLAGS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/io/compiled_model.h"
#include "graph/io/model_reader.h"
#include "passes/compile.h"
#include "passes/kernel_set.h"
#include "passes/options/options.h"
#include "tools/common/command_line.h"

namespace halftone {
namespace tools {

// --strategy, --set and the flags of fields (proto/strategy.proto), --target,
// --verify-each, --dump-dir, --dump-after.
struct ModelFlags {
  std::string path;  // the positional argument: see model_path.h
  std::string strategy;
  std::string target;      // empty: this machine
  bool runs_here = false;  // a .htc must be for this machine
  // Those of --set in the order typed, then those of fields' flags, which win.
  std::vector<passes::Override> overrides;
  passes::CompileFlags compile;
  int threads = 0;  // of a rank, as CompileModel takes them
  std::vector<std::string> op_libraries;
};
// --op-library, of every verb that reads models.
void AddOpLibraryFlag(Verb verb, std::vector<std::string>* paths);
// Before anything reads a model or asks which ops or kernels there are.
absl::Status LoadOpLibraries(const std::vector<std::string>& paths);
// Returns the positional argument.
Flag AddModelFlags(Verb verb, ModelFlags* flags);
// The same without the positional argument.
void AddStrategyFlags(Verb verb, ModelFlags* flags);

// The strategy that a compiled model was made with.
passes::StrategyFile StrategyOf(const CompiledModel& model);

// The kernels of a target, as data; an unknown target is kUsage with the
// known ones.
absl::StatusOr<passes::KernelSet> KernelSetFor(const std::string& target);
std::string ThisMachine();  // "cpu", or the target of its GPU

// What kind of file the model is, which may be named as FindModel
// (model_path.h) takes it, here and below; errors: kModel.
absl::StatusOr<FileKind> KindOf(const ModelFlags& flags);

// Compiles a model, or loads a .htc: with overrides that leave the graph
// alone it is taken as it is with the strategy changed; with others it is
// compiled again from the source kept in it if `may_recompile`, else an error
// (kUsage) says "recompile".
absl::StatusOr<CompiledModel> LoadOrCompile(const ModelFlags& flags,
                                            bool may_recompile);

// Compiles a model again from the source kept in it, its own strategy changed.
// `taps`: values of train to keep. `threads`: as CompileModel takes them.
// `report_entry`: as passes::CompileFlags has it.
absl::StatusOr<CompiledModel> RecompileWith(
    const CompiledModel& model, const std::vector<passes::Override>& overrides,
    const std::vector<std::string>& taps = {}, int threads = 0,
    const std::string& report_entry = "");
// Its program as lowering finds it, which is what `taps` name.
absl::StatusOr<std::unique_ptr<Program>> UnloweredProgram(
    const CompiledModel& model);
// The same with another strategy.
absl::StatusOr<CompiledModel> RecompileAs(const CompiledModel& model,
                                          const passes::StrategyFile& strategy);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_MODEL_FLAGS_H_

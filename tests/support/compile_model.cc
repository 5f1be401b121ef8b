#include "tests/support/compile_model.h"

#include "graph/base/error.h"
#include "kernels/register_all.h"
#include "passes/compile.h"

namespace halftone {

absl::StatusOr<CompiledModel> CompileModel(
    const ModelFile& model, const passes::StrategyFile& strategy,
    const std::vector<passes::Override>& overrides) {
  HT_ASSIGN_OR_RETURN(const passes::Options options,
                      passes::ResolveOptions(strategy, overrides));
  passes::CompileFlags flags;
  flags.verify_each = true;
  return passes::Compile(model, options,
                         passes::KernelSet("cpu", kernels::Kernels().Keys()),
                         flags);
}

absl::StatusOr<CompiledModel> CompileModel(
    const std::string& model, const std::string& strategy,
    const std::vector<passes::Override>& overrides) {
  HT_ASSIGN_OR_RETURN(const ModelFile file, ReadModel(model));
  passes::StrategyFile read;
  if (!strategy.empty()) {
    HT_ASSIGN_OR_RETURN(read, passes::ReadStrategy(strategy));
  }
  return CompileModel(file, read, overrides);
}

}  // namespace halftone

#include "runtime/train/starting_parameters.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/exec/executor.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/source_weights.h"
#include "runtime/train/state.h"

namespace halftone {
namespace runtime {

absl::StatusOr<std::vector<Tensor>> StartingParameters(
    const Program& program, const kernels::KernelRegistry& kernels,
    const TrainConfig& config, const RankResources& rank, bool averages,
    std::vector<std::string>* said) {
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                      Executor::Create(&program, &kernels, rank.device,
                                       rank.communicator, TuningTable(), {}));
  HT_RETURN_IF_ERROR(executor->Initialize(config.strategy.train().seed()));
  const std::string& source = config.init.empty() ? config.out : config.init;
  if (source.empty()) return ReadState(*executor);
  HT_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadAnyState(source, said));
  if (checkpoint.manifest.fingerprint.empty()) {
    const std::string names = TakeSourceNames(program, &checkpoint.tensors);
    if (!names.empty()) {
      said->push_back(absl::StrCat("names are those of ", names));
    }
  }
  LoadOptions options;
  options.source = source;
  options.parameters_only = true;
  options.averages = averages;
  std::vector<std::string> conversions;
  HT_RETURN_IF_ERROR(
      WriteState(checkpoint.tensors, options, *executor, &conversions));
  HT_ASSIGN_OR_RETURN(std::vector<Tensor> state, ReadState(*executor));
  return averages ? Averages(program, std::move(state)) : state;
}

}  // namespace runtime
}  // namespace halftone

// The list of all passes in their order. pipelines.cc is the one place that
// knows it; a new pass is one line there.
//
// Passes that belong together are a group, which runs as one; their names are
// paths: `clean-up.fold-casts` is the pass fold-casts of the group clean-up.
// named_passes.h finds them.
#ifndef HALFTONE_PASSES_PIPELINES_H_
#define HALFTONE_PASSES_PIPELINES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/verify/verify.h"
#include "passes/kernel_set.h"
#include "passes/options/options.h"
#include "passes/pass.h"
#include "passes/pipeline.h"

namespace halftone {
namespace passes {

// What passes are made from; outlives them.
struct PassInputs {
  const Options& options;
  const KernelSet& kernels;
  std::vector<std::string> taps = {};     // see keep_taps.h
  std::vector<std::string> outputs = {};  // see keep_outputs.h
};

struct PassStep {
  Phase phase;
  std::string name;
  std::string doc;  // "decides in which precision each op runs"
  std::function<std::unique_ptr<Pass>(const PassInputs&)> make;
  // Whether a compile with these inputs runs it at all.
  std::function<bool(const PassInputs&)> wanted;

  // "clean-up" of "clean-up.fold-casts"; empty: it is in none.
  absl::string_view group() const;
};
// In order; those of a group stand together.
const std::vector<PassStep>& AllSteps();

struct PassGroup {
  std::string name;
  std::string doc;
  PassPipeline::Repeat repeat;
};
const std::vector<PassGroup>& AllGroups();

struct PassPhase {
  Phase phase;
  std::string name;  // of the folder in which its passes are
  std::string doc;
};
const std::vector<PassPhase>& AllPhases();

// Adds a step, or those of one group.
void AddSteps(const std::vector<const PassStep*>& steps,
              const PassInputs& inputs, Phase phase, PassPipeline* pipeline);
// Adds what a compile with these inputs runs of `phase`, which the pipeline
// holds to what `as` promises; `taken`: the part of it.
void AddPhase(Phase phase, const PassInputs& inputs, Phase as,
              PassPipeline* pipeline,
              const std::function<bool(const PassStep&)>& taken = nullptr);
// What a compile with these inputs runs.
PassPipeline MakePipeline(const PassInputs& inputs,
                          PassPipeline::Settings settings);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PIPELINES_H_

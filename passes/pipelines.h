// The list of all passes in their order. pipelines.cc is the one place that
// knows it; a new pass is one line there.
#ifndef HALFTONE_PASSES_PIPELINES_H_
#define HALFTONE_PASSES_PIPELINES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/verify/verify.h"
#include "passes/kernel_set.h"
#include "passes/options/options.h"
#include "passes/pass.h"
#include "passes/pipeline.h"

namespace halftone {
namespace passes {

struct PassStep {
  Phase phase;
  std::string name;
  // Options and kernels are borrowed: they outlive the pass.
  std::function<std::unique_ptr<Pass>(const Options&, const KernelSet&)> make;
  // Whether a compile with these options runs it at all.
  std::function<bool(const Options&)> wanted;
};

// In order.
const std::vector<PassStep>& AllSteps();

// A pass by name, for tests of one pass alone. An unknown name is kUsage, with
// the nearest one.
absl::StatusOr<std::unique_ptr<Pass>> MakePass(absl::string_view name,
                                               const Options& options,
                                               const KernelSet& kernels);

// What a compile with these options runs; `taps`: see keep_taps.h.
PassPipeline MakePipeline(const Options& options, const KernelSet& kernels,
                          PassPipeline::Settings settings,
                          const std::vector<std::string>& taps = {});

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PIPELINES_H_

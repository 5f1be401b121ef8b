// Passes by name: for `halftone opt`, and for tests of one pass alone.
//
// A name is a pass (`fuse`, `clean-up.fold-casts`), a group (`clean-up`), a
// phase (`lower`: what a compile runs of it) or `all`; _ does for -.
#ifndef HALFTONE_PASSES_NAMED_PASSES_H_
#define HALFTONE_PASSES_NAMED_PASSES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/io/compiled_model.h"
#include "graph/ir/program.h"
#include "graph/verify/verify.h"
#include "passes/pass.h"
#include "passes/pipeline.h"
#include "passes/pipelines.h"

namespace halftone {
namespace passes {

// Unknown names are kUsage, with the nearest one, here and below.
absl::StatusOr<std::unique_ptr<Pass>> MakePass(absl::string_view name,
                                               const PassInputs& inputs);

// What the first pass of what is called so may assume.
absl::StatusOr<Phase> PhaseBefore(absl::string_view name);

// Adds what is called so: a pass or group whether or not a compile with these
// inputs has it, at `*reached`, which holds before and after it. A phase is
// held to what it promises if the one before was reached, and then is.
absl::Status AddNamed(absl::string_view name, const PassInputs& inputs,
                      Phase* reached, PassPipeline* pipeline);

// Runs what `names` says, in that order, over a program in any state. It is
// held to the furthest phase whose rules it fulfils when it comes and that all
// of the passes may assume: after each of them, too. Errors: as
// PassPipeline::Run, but kUsage for what comes of another order than a
// compile's: of the names, or of a pass and the passes that have made the
// program; kModel for a program that is none in any phase.
absl::StatusOr<std::vector<PassRun>> RunNamed(
    const std::vector<std::string>& names, const PassInputs& inputs,
    PassPipeline::Settings settings, Program& program);

// The same as rows of a report.
void AddPassRows(const std::vector<PassRun>& runs,
                 google::protobuf::RepeatedPtrField<proto::PassRow>* rows);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_NAMED_PASSES_H_

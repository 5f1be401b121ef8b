#include "tools/common/keep_fetched.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "runtime/log/words.h"
#include "runtime/train/resolve_fetches.h"
#include "tools/common/model_flags.h"

namespace halftone {
namespace tools {
namespace {

// Adds those that training does not have as values of their own; false: none.
bool AddHidden(const Program& program,
               const std::vector<runtime::Fetch>& fetches,
               std::vector<std::string>* hidden) {
  const Entry& train = *program.FindEntry(kTrainEntry);
  const size_t before = hidden->size();
  for (const runtime::Fetch& fetch : fetches) {
    if (!train.FindResult(fetch.kept).valid() &&
        !train.block().FindValue(fetch.kept).valid() &&
        !absl::c_linear_search(*hidden, fetch.kept)) {
      hidden->push_back(fetch.kept);
    }
  }
  return hidden->size() > before;
}

}  // namespace

absl::Status KeepFetched(CompiledModel* model, int threads,
                         runtime::TrainConfig* config) {
  if (model->program->FindEntry(kTrainEntry) == nullptr) {
    return absl::OkStatus();
  }
  std::unique_ptr<Program> unlowered;
  if (runtime::HasGlob(config->fetches)) {
    HT_ASSIGN_OR_RETURN(unlowered, UnloweredProgram(*model));
  }
  HT_ASSIGN_OR_RETURN(const std::vector<runtime::Fetch> fetches,
                      runtime::ResolveFetches(*model->program, config->fetches,
                                              unlowered.get()));
  // As values of their own no more of them match.
  config->fetches.clear();
  for (const runtime::Fetch& fetch : fetches) {
    config->fetches.push_back(fetch.text);
  }
  std::vector<std::string> hidden;
  // What is kept may take the place of an equal value that was there before.
  while (AddHidden(*model->program, fetches, &hidden)) {
    HT_ASSIGN_OR_RETURN(
        CompiledModel again,
        RecompileWith(*model, /*overrides=*/{}, hidden, threads));
    *model = std::move(again);
  }
  if (hidden.empty()) return absl::OkStatus();
  config->notes.push_back(absl::StrCat(
      "note     --fetch ", runtime::JoinFew(hidden, 5, ", "),
      ": hidden in a fused op or left out; compiled again so that it is kept: "
      "low-precision sums may round otherwise than without --fetch"));
  return absl::OkStatus();
}

}  // namespace tools
}  // namespace halftone

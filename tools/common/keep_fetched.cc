#include "tools/common/keep_fetched.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "runtime/log/words.h"
#include "runtime/train/resolve_fetches.h"
#include "tools/common/model_flags.h"

namespace halftone {
namespace tools {

absl::Status KeepFetched(CompiledModel* model, int threads,
                         runtime::TrainConfig* config) {
  const Entry* const train = model->program->FindEntry(kTrainEntry);
  if (train == nullptr) return absl::OkStatus();
  std::unique_ptr<Program> unlowered;
  if (runtime::HasGlob(config->fetches)) {
    HT_ASSIGN_OR_RETURN(unlowered, UnloweredProgram(*model));
  }
  HT_ASSIGN_OR_RETURN(const std::vector<runtime::Fetch> fetches,
                      runtime::ResolveFetches(*model->program, config->fetches,
                                              unlowered.get()));
  // As values of their own no more of them match.
  config->fetches.clear();
  std::vector<std::string> hidden;
  for (const runtime::Fetch& fetch : fetches) {
    config->fetches.push_back(fetch.text);
    if (!train->FindResult(fetch.kept).valid() &&
        !train->block().FindValue(fetch.kept).valid()) {
      hidden.push_back(fetch.kept);
    }
  }
  if (hidden.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(CompiledModel again,
                      RecompileWith(*model, /*overrides=*/{}, hidden, threads));
  *model = std::move(again);
  config->notes.push_back(absl::StrCat(
      "note     --fetch ", runtime::JoinFew(hidden, 5, ", "),
      ": hidden in a fused op or left out; compiled again so that it is kept: "
      "low-precision sums may round otherwise than without --fetch"));
  return absl::OkStatus();
}

}  // namespace tools
}  // namespace halftone

#include "runtime/train/settings.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/op_library.h"
#include "graph/strategy/fields.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

// As --checkpoint-every takes it.
std::string Text(Cadence cadence) {
  switch (cadence.unit) {
    case Cadence::Unit::kSteps:
      return absl::StrCat(cadence.every);
    case Cadence::Unit::kMinutes:
      return absl::StrCat(cadence.every, "m");
    case Cadence::Unit::kEpochs:
      return absl::StrCat(cadence.every, "e");
    case Cadence::Unit::kNever:
      break;
  }
  return "never";
}

std::string Samples(const Dataset* data) {
  return Count(data == nullptr ? 0 : data->size(), "sample");
}

// One setting a line: neither names nor values hold line ends.
std::string Encode(const Settings& settings) {
  return absl::StrJoin(settings, "\n", absl::PairFormatter(" "));
}

std::string Difference(absl::string_view usual, absl::string_view other) {
  const std::vector<std::string> a = absl::StrSplit(usual, '\n');
  const std::vector<std::string> b = absl::StrSplit(other, '\n');
  if (a.size() != b.size()) return "another version of halftone";
  std::vector<std::string> different;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    different.push_back(
        absl::StrCat(b[i], " instead of ", a[i].substr(a[i].find(' ') + 1)));
  }
  return absl::StrJoin(different, ", ");
}

}  // namespace

Settings SettingsOf(const Rank& rank, bool train) {
  const TrainConfig& c = rank.config();
  Settings settings = {
      {"the data's test split:", Samples(rank.data().test)},
  };
  for (const OpLibrary* library : LibrariesOf(*rank.inputs.program)) {
    settings.emplace_back(absl::StrCat("--op-library:", library->name),
                          library->hash);
  }
  // However it was said.
  proto::Strategy strategy = c.strategy;
  strategy.mutable_train()->set_batch_size(rank.sampler.batch);
  strategy.mutable_train()->clear_batch_size_per_rank();
  for (const StrategyField& field : StrategyFields()) {
    if (field.kind != StrategyField::Kind::kField ||
        !field.leaves_graph_alone || !field.agrees_on_all_ranks) {
      continue;
    }
    // An eval has nothing of the strategy but the batch.
    if (!train && field.path != "train.batch_size") continue;
    const std::string value = ValueAt(strategy, field.path);
    settings.emplace_back(field.path, value.empty() ? "unset" : value);
  }
  if (!train) return settings;
  const Settings more = {
      {"the data's train split:", Samples(rank.data().train)},
      {"the training samples' hash:",
       Hex64(StableHash(rank.data().marks) ^ rank.data().content_hash)},
      {"--no-shuffle", c.shuffle ? "false" : "true"},
      {"--no-deterministic", c.deterministic ? "false" : "true"},
      {"--log-every", absl::StrCat(c.log_every)},
      {"--fetch-every", absl::StrCat(c.fetch_every)},
      {"--eval-every", Text(c.eval_every)},
      {"--checkpoint-every", Text(c.checkpoint_every)},
      {"--compare-every", Text(c.compare_every)},
      {"--capsule", absl::StrCat(c.capsules)},
  };
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

absl::Status CheckSameSettings(Communicator& communicator,
                               const Settings& settings) {
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator.AllGather(Encode(settings)));
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    return CommunicationError("rank ", r, " was started with other settings ",
                              "than rank 0: ", Difference(all[0], all[r]),
                              "; give all ranks the same command and data");
  }
  return absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone

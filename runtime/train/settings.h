// Ranks that were started with other settings than the rest, beside the model.
#ifndef HALFTONE_RUNTIME_TRAIN_SETTINGS_H_
#define HALFTONE_RUNTIME_TRAIN_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collective/communicator.h"
#include "runtime/train/rank_setup.h"

namespace halftone {
namespace runtime {

// A field or flag and its value, as one may type it.
using Settings = std::vector<std::pair<std::string, std::string>>;

// All that decides the numbers and the collectives of a run or eval and that
// each process takes from its own command and files; of the data, the number
// of samples. `rank` has its data.
Settings SettingsOf(const Rank& rank, bool train);

// A collective. If the ranks differ, all get the same error (kCommunication):
// the first rank that differs from rank 0, and in what.
absl::Status CheckSameSettings(Communicator& communicator,
                               const Settings& settings);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_SETTINGS_H_

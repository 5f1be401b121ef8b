#include "runtime/train/peers.h"

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {

absl::StatusOr<std::vector<std::string>> Agree(Communicator& communicator,
                                               const absl::Status& mine,
                                               absl::string_view message) {
  // One byte says the class of the error; 0: all is well.
  const char code = mine.ok() ? '\0' : static_cast<char>(ExitCodeOf(mine));
  const std::string said =
      absl::StrCat(std::string(1, code), mine.ok() ? message : mine.message());
  HT_ASSIGN_OR_RETURN(std::vector<std::string> all,
                      communicator.AllGather(said));
  HT_RETURN_IF_ERROR(mine);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank][0] == '\0') continue;
    return MakeError(static_cast<ExitCode>(all[rank][0]),
                     absl::StrCat("rank ", rank, ": ", all[rank].substr(1)));
  }
  for (std::string& one : all) one.erase(0, 1);
  return all;
}

absl::Status Culprit(absl::Span<const absl::Status> results) {
  absl::Status first;
  for (const absl::Status& status : results) {
    if (status.ok()) continue;
    if (ExitCodeOf(status) != ExitCode::kCommunication) return status;
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace runtime
}  // namespace halftone

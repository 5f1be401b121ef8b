#include "runtime/collective/check_all_equal.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/collective/call.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kMaxShown = 16;

}  // namespace

absl::Status CheckAllEqual(Communicator& communicator, absl::string_view what,
                           absl::string_view bytes) {
  // A hash is shown as it is: one may look for it elsewhere.
  const std::string mine =
      bytes.size() <= kMaxShown
          ? std::string(bytes)
          : absl::StrCat(Hex64(StableHash(bytes)), " (",
                         WithCommas(bytes.size()), " bytes)");
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator.AllGather(mine));
  std::map<std::string, std::vector<int>> ranks_by_value;
  for (size_t r = 0; r < all.size(); ++r) {
    ranks_by_value[all[r]].push_back(static_cast<int>(r));
  }
  if (ranks_by_value.size() == 1) return absl::OkStatus();
  // The most frequent value; of equally frequent ones, that of the lowest rank.
  const std::string* usual = &all[0];
  for (const std::string& value : all) {
    if (ranks_by_value[value].size() > ranks_by_value[*usual].size()) {
      usual = &value;
    }
  }
  std::string text =
      absl::StrCat("ranks have different ", what,
                   "s: ", RankList(ranks_by_value[*usual]), ": ", *usual);
  for (const auto& [value, ranks] : ranks_by_value) {
    if (value == *usual) continue;
    absl::StrAppend(&text, "; but ", RankList(ranks), ": ", value);
  }
  return CommunicationError(text, "; give all ranks the same files");
}

}  // namespace runtime
}  // namespace halftone

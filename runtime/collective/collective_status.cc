#include "runtime/collective/collective_status.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace halftone {
namespace runtime {
namespace {

// One late rank, in words; empty if `there` is where the asker is, or has been
// there: what it sent may not have come.
std::string Late(const CollectiveStatus& asker,
                 const std::optional<CollectiveStatus>& there, int rank) {
  if (!there) {
    return absl::StrCat("rank ", rank,
                        " did not arrive and does not answer: it is stopped, "
                        "or its machine or network is gone");
  }
  const bool same = there->number == asker.number;
  if (there->number > asker.number || (same && there->call == asker.call)) {
    return "";
  }
  if (there->inside) {
    return absl::StrCat("rank ", rank, " did not arrive: it is in ",
                        there->call, ", its collective ", there->number,
                        same ? "; all ranks must run the same program" : "");
  }
  return absl::StrCat("rank ", rank, " did not arrive: ",
                      there->number == 0
                          ? "it has not called a collective yet"
                          : absl::StrCat("it is busy since its collective ",
                                         there->number, ", ", there->call));
}

}  // namespace

std::string ToText(const CollectiveStatus& where) {
  return absl::StrCat(where.inside ? 1 : 0, "\n", where.number, "\n",
                      where.call);
}

std::optional<CollectiveStatus> CollectiveStatusFromText(
    absl::string_view text) {
  const std::vector<std::string> lines =
      absl::StrSplit(text, absl::MaxSplits('\n', 2));
  CollectiveStatus where;
  if (lines.size() != 3 || !absl::SimpleAtoi(lines[1], &where.number)) {
    return std::nullopt;
  }
  where.inside = lines[0] == "1";
  where.call = lines[2];
  return where;
}

RunFailure ExplainLate(
    int asker, const std::vector<std::optional<CollectiveStatus>>& ranks) {
  RunFailure failure;
  std::vector<std::string> late;
  const CollectiveStatus& here = *ranks[asker];
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (static_cast<int>(r) == asker) continue;
    const std::string text = Late(here, ranks[r], static_cast<int>(r));
    if (text.empty()) continue;
    failure.suspects.push_back(static_cast<int>(r));
    late.push_back(text);
  }
  const std::string where =
      absl::StrCat("rank ", asker, " waits in ", here.call, ", its collective ",
                   here.number);
  failure.text =
      late.empty()
          ? absl::StrCat(where,
                         ", and so do all others: the network between them "
                         "is stuck or very slow")
          : absl::StrCat(absl::StrJoin(late, "; "), " (", where, ")");
  return failure;
}

}  // namespace runtime
}  // namespace halftone

#include "runtime/collective/call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "runtime/collective/reduce.h"

namespace halftone {
namespace runtime {

absl::string_view Name(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kGatherParts:
      return "gather_parts";
    case Collective::kBarrier:
      return "barrier";
    case Collective::kReduceScatter:
      return "reduce_scatter";
  }
  return "?";
}

std::string Describe(const Call& call) {
  switch (call.collective) {
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
      return absl::StrCat(Name(call.collective), " (", Name(call.op), " of ",
                          WithCommas(call.count), " ", Name(call.dtype),
                          call.pre_scale == 1
                              ? std::string()
                              : absl::StrCat(" x ", call.pre_scale),
                          ")");
    case Collective::kBroadcast:
      return absl::StrCat("broadcast (", WithCommas(call.count),
                          " bytes from rank ", call.root, ")");
    case Collective::kGatherParts:
      return absl::StrCat("gather_parts (", WithCommas(call.count),
                          " bytes of each rank)");
    default:
      return std::string(Name(call.collective));
  }
}

std::string RankList(absl::Span<const int> ranks) {
  constexpr size_t kShown = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i) {
    const bool last = i + 1 == ranks.size();
    absl::StrAppend(&text, i == 0 ? "" : last ? " and " : ", ", ranks[i]);
  }
  if (ranks.size() > kShown) {
    absl::StrAppend(&text, " and ", ranks.size() - kShown, " more");
  }
  return text;
}

}  // namespace runtime
}  // namespace halftone

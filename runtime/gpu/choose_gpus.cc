#include "runtime/gpu/choose_gpus.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kVisible[] = "CUDA_VISIBLE_DEVICES";

// Entries of CUDA_VISIBLE_DEVICES; none if it is not set. As CUDA does it, the
// list ends at the first "-1".
std::optional<std::vector<std::string>> VisibleEntries(const Environment& env) {
  const auto found = env.find(kVisible);
  if (found == env.end()) return std::nullopt;
  std::vector<std::string> entries;
  for (absl::string_view entry : absl::StrSplit(found->second, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    if (entry.empty() || entry == "-1") break;
    entries.emplace_back(entry);
  }
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<int>> OrdinalsOf(absl::Span<const int> gpus,
                                            const Environment& env) {
  const auto visible = VisibleEntries(env);
  if (!visible) return std::vector<int>(gpus.begin(), gpus.end());
  if (visible->empty()) {
    return DeviceError("--gpus ", absl::StrJoin(gpus, ","), ": ", kVisible, "=",
                       env.at(kVisible), " hides all GPUs from this process");
  }
  std::vector<int> ordinals;
  for (int gpu : gpus) {
    const auto found =
        std::find(visible->begin(), visible->end(), absl::StrCat(gpu));
    if (found == visible->end()) {
      return UsageError("--gpus ", absl::StrJoin(gpus, ","), ": ", gpu,
                        " is not in ", kVisible, "=", env.at(kVisible),
                        " (--gpus takes physical ids; without it the ranks "
                        "take what is visible)");
    }
    ordinals.push_back(static_cast<int>(found - visible->begin()));
  }
  return ordinals;
}

absl::StatusOr<int> OrdinalOf(const RankPlacement& place,
                              const Environment& env) {
  if (place.device >= 0) return place.device;
  const auto visible = VisibleEntries(env);
  if (!visible) return place.local_rank;
  const int count = static_cast<int>(visible->size());
  if (count == 1) return 0;
  if (place.local_rank < count) return place.local_rank;
  return DeviceError("rank ", place.rank, ": it is local rank ",
                     place.local_rank, " of ", place.local_world_size, ", but ",
                     kVisible, "=", env.at(kVisible), " shows ", count,
                     count == 1 ? " device" : " devices",
                     "; start as many ranks as there are GPUs");
}

int CountVisible(int gpus, const Environment& env) {
  const auto visible = VisibleEntries(env);
  return visible ? std::min(gpus, static_cast<int>(visible->size())) : gpus;
}

}  // namespace runtime
}  // namespace halftone

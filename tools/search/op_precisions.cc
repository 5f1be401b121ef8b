#include "tools/search/op_precisions.h"

#include <algorithm>
#include <set>

#include "graph/base/text.h"

namespace halftone {
namespace tools {
namespace {

using Globs = google::protobuf::RepeatedPtrField<std::string>;

// `low`: what the globs say.
void SetGlobs(const OpPrecisions& ops, bool low,
              absl::Span<const std::string> model_ops, Globs* globs) {
  Globs set;
  for (const std::string& glob : *globs) {
    const bool holds =
        std::none_of(ops.begin(), ops.end(), [&](const auto& op) {
          return op.second != low && GlobMatch(glob, op.first);
        });
    if (holds) *set.Add() = glob;
    if (holds) continue;
    for (const std::string& name : model_ops) {
      if (ops.count(name) == 0 && GlobMatch(glob, name)) *set.Add() = name;
    }
  }
  const std::set<std::string> there(set.begin(), set.end());
  for (const auto& [name, is_low] : ops) {
    if (is_low == low && there.count(name) == 0) *set.Add() = name;
  }
  globs->Swap(&set);
}

}  // namespace

void SetOpPrecisions(const OpPrecisions& low,
                     absl::Span<const std::string> model_ops, proto::Amp* amp) {
  SetGlobs(low, true, model_ops, amp->mutable_custom_white_opnames());
  SetGlobs(low, false, model_ops, amp->mutable_custom_black_opnames());
}

}  // namespace tools
}  // namespace halftone

// Why an op or a cast has the precision that it has.
#ifndef HALFTONE_GRAPH_IR_DECISION_H_
#define HALFTONE_GRAPH_IR_DECISION_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "graph/ir/compact_list.h"
#include "graph/ir/ids.h"

namespace halftone {

// Closed: every op and every cast of a compiled program has one of these.
enum class Reason : uint8_t {
  kNone = 0,  // not decided yet; refused by the verifier after precision
  kWhiteList,
  kBlackList,
  kUnlisted,  // in none of the lists in force
  kGrayAllLow,
  kGrayF32Input,
  kGrayAnyLow,  // any_low: one low producer is enough
  kNoLowInput,  // any_low: no producer is low or black
  kClearFollows,
  kFollowsReaders,
  kNoFloatInput,
  kUserWhite,
  kUserBlack,
  kBlackVarname,
  kFp32Scope,
  kNoKernel,
  kKeepF32Slot,
  kMinCut,
  kLoss,
  kLevel,
  kGradientOf,
  kSchema,
  kRecomputed,  // a copy of a forward op in backward
  kCompressed,  // packs what backward reads, or unpacks it
};
// "WHITE_LIST", "KEEP_F32_SLOT", ...; "" for kNone.
absl::string_view Name(Reason reason);
std::optional<Reason> ReasonFromName(absl::string_view name);
// The rule behind a code, a sentence; "" for none.
absl::string_view RuleOf(absl::string_view reason);

struct ReasonDoc {
  absl::string_view code, rule;
};
// All but kNone, for `halftone explain`.
absl::Span<const ReasonDoc> ReasonDocs();

using NameList = CompactList<NameId, 3>;

struct Decision {
  DType precision{};  // the op computes on this type
  Reason reason = Reason::kNone;
  // Names of the ops (or feeds) it came from ("GRAY_ALL_LOW <- conv1"); may be
  // empty.
  NameList because_of;
};

// The part of a training step that an op belongs to.
enum class Role : uint8_t {
  kForward = 0,
  kBackward,
  kLossScale,
  kCommunicate,
  kOptimize,
};
// "forward", "backward", "loss-scale", "communicate", "optimize".
absl::string_view Name(Role role);
std::optional<Role> RoleFromName(absl::string_view name);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_DECISION_H_

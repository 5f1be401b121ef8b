#include "graph/ir/decision.h"

#include <iterator>

namespace halftone {
namespace {

// By the enumerators' values.
constexpr ReasonDoc kReasons[] = {
    {"", ""},
    {"WHITE_LIST",
     "White ops (convolutions, matrix products) run in low precision, float "
     "inputs cast down: they gain most and lose least."},
    {"BLACK_LIST",
     "Black ops run in f32, inputs cast up: they are sensitive to rounding, "
     "grow their input, or sum many terms."},
    {"UNLISTED",
     "None of the lists that amp.op_lists gives names the op: it is black, as "
     "`unlisted` says (the default at O1)."},
    {"GRAY_ALL_LOW",
     "A gray op runs in low precision if all its float inputs outside slots "
     "that stay f32 are low."},
    {"GRAY_F32_INPUT",
     "A gray op with an f32 input runs in f32: the widest input wins. Under "
     "precision_rule any_low it is an input that comes from a black op."},
    {"GRAY_ANY_LOW",
     "precision_rule any_low: a gray op runs in low precision if one of its "
     "inputs is low and none comes from a black op; its f32 inputs are cast "
     "down."},
    {"NO_LOW_INPUT",
     "precision_rule any_low: no input of this gray or clear op comes from an "
     "op that is low, nor from a black one: it is left alone, in f32."},
    {"CLEAR_FOLLOWS",
     "A clear op does no arithmetic: it keeps what it is given and never "
     "starts a cast."},
    {"FOLLOWS_READERS",
     "All float inputs of this gray or clear op are parameters, constants or "
     "such ops themselves: it follows those that read it. f32 if one of them "
     "is, if nobody reads it, or if it is an output of the model. At any level "
     "so is what is computed of whole numbers, of which f16 holds those up to "
     "2,048, for ops that make no floats: places, lengths."},
    {"NO_FLOAT_INPUT", "An op without float input computes in f32."},
    {"USER_WHITE", "A white list of the strategy or a flag names it."},
    {"USER_BLACK", "A black list of the strategy or a flag names it."},
    {"BLACK_VARNAME",
     "It reads or writes a value that custom_black_varnames names."},
    {"FP32_SCOPE",
     "It is in a scope of amp.fp32_scopes: all in it runs in f32, and "
     "parameters that only it reads stay f32."},
    {"NO_KERNEL",
     "It would be low, but the target has no low-precision kernel for it."},
    {"KEEP_F32_SLOT",
     "The slot stays f32 in an op that is low otherwise (batch-norm scale, "
     "bias, statistics)."},
    {"MIN_CUT", "precision_rule min_cost: a minimum cut over cast bytes."},
    {"LOSS", "The op that defines the loss is f32 at every level."},
    {"LEVEL", "The level's bundle decides (O2 and O3: gray ops are low)."},
    {"GRADIENT_OF", "A backward op runs as its forward op does."},
    {"SCHEMA",
     "Ops that communicate, scale the loss or update are fixed by their "
     "schema or their inputs."},
    {"RECOMPUTED",
     "A copy of a forward op, in its precision: backward makes again what "
     "memory.recompute does not keep, with the same bits."},
    {"COMPRESSED",
     "memory.compress has backward read a value in few bits: the op packs it "
     "behind its last reader in forward, or unpacks it."},
};
static_assert(std::size(kReasons) ==
              static_cast<size_t>(Reason::kCompressed) + 1);

constexpr absl::string_view kRoles[] = {"forward", "backward", "loss-scale",
                                        "communicate", "optimize"};
static_assert(std::size(kRoles) == static_cast<size_t>(Role::kOptimize) + 1);

}  // namespace

absl::string_view Name(Reason reason) {
  return kReasons[static_cast<size_t>(reason)].code;
}

std::optional<Reason> ReasonFromName(absl::string_view name) {
  for (size_t i = 1; i < std::size(kReasons); ++i) {
    if (kReasons[i].code == name) return static_cast<Reason>(i);
  }
  return std::nullopt;
}

absl::string_view RuleOf(absl::string_view reason) {
  const std::optional<Reason> found = ReasonFromName(reason);
  return found.has_value() ? kReasons[static_cast<size_t>(*found)].rule : "";
}

absl::Span<const ReasonDoc> ReasonDocs() {
  return absl::MakeConstSpan(kReasons).subspan(1);
}

absl::string_view Name(Role role) { return kRoles[static_cast<size_t>(role)]; }

std::optional<Role> RoleFromName(absl::string_view name) {
  for (size_t i = 0; i < std::size(kRoles); ++i) {
    if (kRoles[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

}  // namespace halftone

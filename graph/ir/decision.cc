#include "graph/ir/decision.h"

#include <iterator>

namespace halftone {
namespace {

// By the enumerators' values.
constexpr absl::string_view kReasons[] = {
    "",
    "WHITE_LIST",
    "BLACK_LIST",
    "UNLISTED",
    "GRAY_ALL_LOW",
    "GRAY_F32_INPUT",
    "GRAY_ANY_LOW",
    "NO_LOW_INPUT",
    "CLEAR_FOLLOWS",
    "FOLLOWS_READERS",
    "NO_FLOAT_INPUT",
    "USER_WHITE",
    "USER_BLACK",
    "BLACK_VARNAME",
    "NO_KERNEL",
    "KEEP_F32_SLOT",
    "MIN_CUT",
    "LOSS",
    "LEVEL",
    "GRADIENT_OF",
    "SCHEMA",
};
static_assert(std::size(kReasons) == static_cast<size_t>(Reason::kSchema) + 1);

constexpr absl::string_view kRoles[] = {"forward", "backward", "loss-scale",
                                        "communicate", "optimize"};
static_assert(std::size(kRoles) == static_cast<size_t>(Role::kOptimize) + 1);

}  // namespace

absl::string_view Name(Reason reason) {
  return kReasons[static_cast<size_t>(reason)];
}

std::optional<Reason> ReasonFromName(absl::string_view name) {
  for (size_t i = 1; i < std::size(kReasons); ++i) {
    if (kReasons[i] == name) return static_cast<Reason>(i);
  }
  return std::nullopt;
}

absl::string_view Name(Role role) { return kRoles[static_cast<size_t>(role)]; }

std::optional<Role> RoleFromName(absl::string_view name) {
  for (size_t i = 0; i < std::size(kRoles); ++i) {
    if (kRoles[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

}  // namespace halftone

// Other libraries' op lists, by name.
#ifndef HALFTONE_PASSES_OPTIONS_NAMED_OP_LISTS_H_
#define HALFTONE_PASSES_OPTIONS_NAMED_OP_LISTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace passes {

// What `amp.op_lists` may name besides files: "paddle", "fleetx", "torch",
// "apex".
std::vector<std::string> OpListNames();

// The lists of that name; their origin is written beside them.
std::optional<proto::OpLists> FindOpLists(absl::string_view name);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_NAMED_OP_LISTS_H_

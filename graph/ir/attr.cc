#include "graph/ir/attr.h"

#include <iterator>

namespace halftone {
namespace {

constexpr absl::string_view kKinds[] = {"bool", "int",    "float",   "string",
                                        "ints", "floats", "strings", "dtype"};
static_assert(std::size(kKinds) == std::variant_size_v<AttrValue>);

}  // namespace

absl::string_view Name(AttrKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

}  // namespace halftone

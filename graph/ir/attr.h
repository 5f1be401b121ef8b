// Typed attributes of ops.
#ifndef HALFTONE_GRAPH_IR_ATTR_H_
#define HALFTONE_GRAPH_IR_ATTR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"

namespace halftone {

// The order of the alternatives is that of AttrKind. Floats are held as
// doubles; an op casts them to f32 where it computes.
using AttrValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                 std::vector<double>, std::vector<std::string>, DType>;

enum class AttrKind : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings,
  kDType,
};
inline AttrKind KindOf(const AttrValue& v) {
  return static_cast<AttrKind>(v.index());
}
absl::string_view Name(AttrKind kind);

// Explicitly set attributes by their index in the schema, sorted; everything
// else has the schema's default.
using AttrList = std::vector<std::pair<int16_t, AttrValue>>;

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_ATTR_H_

// Attributes on their way between a library of ops and the program.
#ifndef HALFTONE_KERNELS_PLUGIN_DECLARED_ATTRS_H_
#define HALFTONE_KERNELS_PLUGIN_DECLARED_ATTRS_H_

#include <deque>
#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/attr.h"
#include "graph/schema/op_schema.h"
#include "kernels/plugin/halftone_op_abi.h"

namespace halftone {
namespace kernels {

// A text that a library gives; "" where it gives none.
inline const char* TextOrEmpty(const char* text) {
  return text == nullptr ? "" : text;
}

// The kinds of an attribute, as halftone_op.h numbers them.
inline constexpr int kMostAttrKinds = 6;

// Of a declaration that has been checked.
AttrValue ValueOf(const HalftoneAttr& attr);

// The values of all attributes of a schema, as a library sees them.
class AttrsForLibrary {
 public:
  AttrsForLibrary(
      const OpSchema& schema,
      const std::function<const AttrValue&(absl::string_view name)>& value);
  AttrsForLibrary(const AttrsForLibrary&) = delete;
  absl::Span<const HalftoneAttr> all() const { return attrs_; }

 private:
  std::deque<AttrValue> values_;
  std::vector<HalftoneAttr> attrs_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_PLUGIN_DECLARED_ATTRS_H_

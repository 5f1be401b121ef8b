#include "graph/ops/unary_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/infer_helpers.h"

namespace halftone {
namespace ops {

OpSchema UnarySchema(absl::string_view name, absl::string_view doc,
                     AmpClass amp) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In("X", "T", "any dims")
      .Out("Out", "T", "dims of X")
      .Infer(SameDims({"X"}, "Out"))
      .Amp(amp)
      .Layout(LayoutRule::kAny)
      .ElementWise();
  return schema;
}

OpSchema UnaryGradSchema(absl::string_view of, absl::string_view formula,
                         absl::string_view forward_slot) {
  OpSchema schema(absl::StrCat(of, "_grad"));
  schema.Doc(absl::StrCat("The gradient of ", of, ": XGrad = ", formula, "."))
      .TypeVar("T", kFloatTypes)
      .In(forward_slot, "T", absl::StrCat("of ", of))
      .In("OutGrad", "T", "the same dims")
      .Out("XGrad", "T", "the same dims")
      .Infer(SameDims({std::string(forward_slot), "OutGrad"}, "XGrad"))
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kGray)
      .Layout(LayoutRule::kAny)
      .ElementWise();
  return schema;
}

}  // namespace ops
}  // namespace halftone

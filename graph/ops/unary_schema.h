// What ops of one tensor, element by element, have in common.
#ifndef HALFTONE_GRAPH_OPS_UNARY_SCHEMA_H_
#define HALFTONE_GRAPH_OPS_UNARY_SCHEMA_H_

#include "absl/strings/string_view.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace ops {

// Who gave an op its class: Paddle 2.6 where it has the op in its lists, else
// torch.autocast. Doc of ops that say so.
inline constexpr char kClassOfPaddle[] = " The class is Paddle's.";
inline constexpr char kClassOfAutocast[] =
    " The class is torch.autocast's; Paddle's lists do not have the op.";

// Out = f(X). Has no gradient yet.
OpSchema UnarySchema(absl::string_view name, absl::string_view doc,
                     AmpClass amp);

// `of`_grad: XGrad = `formula`, from `forward_slot` (X or Out) and OutGrad.
OpSchema UnaryGradSchema(absl::string_view of, absl::string_view formula,
                         absl::string_view forward_slot);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_UNARY_SCHEMA_H_

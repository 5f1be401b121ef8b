// Attributes of Paddle's ops as ours.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_ATTRS_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_ATTRS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "graph/import/paddle_program.h"
#include "graph/ir/attr.h"
#include "graph/schema/op_schema.h"

namespace halftone {

// Nullopt: of a kind that ours are never (a block, a variable).
std::optional<AttrValue> ValueOf(const paddle::OpDesc::Attr& attr);

// Whether Paddle's attribute, which our op does not have, changes nothing: it
// tells where or how fast the op runs, or has the value at which it does
// nothing.
bool ChangesNothing(const paddle::OpDesc::Attr& attr);

// As errors show it: "[1, 2]", "\"SAME\"".
std::string TextOf(const paddle::OpDesc::Attr& attr);

// Sets an attribute of ours, unless it is the schema's default. Returns what
// is wrong (" = 3 is not taken"); empty: nothing.
std::string SetAttrOf(const OpSchema& schema, absl::string_view name,
                      AttrValue value, proto::OpNode* node);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_ATTRS_H_

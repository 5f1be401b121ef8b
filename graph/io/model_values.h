// The values of program.proto as the program's own: dtypes, attributes, cell
// types and initialisers. Errors say what was expected and found; the caller
// puts the place in front.
#ifndef HALFTONE_GRAPH_IO_MODEL_VALUES_H_
#define HALFTONE_GRAPH_IO_MODEL_VALUES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "graph/schema/op_schema.h"
#include "proto/program.pb.h"

namespace halftone {

// kInvalid for INVALID.
DType FromProto(proto::DataType dtype);

// The one value that is set. None set is an empty list, which OpBuilder takes
// for a list of any kind and for nothing else.
absl::StatusOr<AttrValue> FromProto(const proto::Attribute& attr);

// The schema's name of an attribute that a model gives under an older one
// (dropout_prob, perm), or `name`.
absl::string_view AttrName(const OpSchema& schema, absl::string_view name);

// Likewise of an input slot.
absl::string_view SlotName(const OpSchema& schema, absl::string_view name);

// Sets the cell's type: trainable parameters and statistics are f32.
absl::Status SetCellType(const proto::Parameter& param, bool statistic,
                         Cell* cell);

// Sets the cell's initialiser; its type is set.
absl::Status SetInitializer(const proto::Parameter& param, Cell* cell);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_MODEL_VALUES_H_

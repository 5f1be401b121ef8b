// Paddle's numbers of dtypes: VarType.Type of its framework.proto, which
// attributes, tensors and files of parameters have.
#ifndef HALFTONE_GRAPH_SCHEMA_PADDLE_DTYPES_H_
#define HALFTONE_GRAPH_SCHEMA_PADDLE_DTYPES_H_

#include <cstdint>
#include <optional>

#include "graph/base/dtype.h"

namespace halftone {

// Nullopt: a type that is none of ours.
std::optional<DType> DTypeFromPaddle(int64_t number);
// Of a dtype that is set.
int PaddleNumberOf(DType dtype);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_PADDLE_DTYPES_H_

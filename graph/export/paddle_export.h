// A program as a Paddle ProgramDesc, for what shows or reads those (Netron).
#ifndef HALFTONE_GRAPH_EXPORT_PADDLE_EXPORT_H_
#define HALFTONE_GRAPH_EXPORT_PADDLE_EXPORT_H_

#include "graph/ir/program.h"
#include "proto/paddle.pb.h"

namespace halftone {

// A .pdmodel with one block: the entry's feeds, cells and values as variables
// (a dim that depends on the batch is -1), its ops with their slots and
// attributes, and an `assign` for each commit. Low copies of parameters, which
// our steps keep, are cast from them at the beginning, as Paddle has them.
// Types of ops, dtypes, roles and the casts' attributes are Paddle's where
// Paddle has them. The op that makes the loss has role 256. No op has a body:
// programs from before fusion.
proto::paddle::ProgramDesc ToPaddleProgram(const Program& program,
                                           const Entry& entry);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_EXPORT_PADDLE_EXPORT_H_

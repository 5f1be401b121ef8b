// A program as a Paddle ProgramDesc, for what shows or reads those (Netron).
#ifndef HALFTONE_GRAPH_EXPORT_PADDLE_EXPORT_H_
#define HALFTONE_GRAPH_EXPORT_PADDLE_EXPORT_H_

#include <string>

#include "graph/ir/program.h"

namespace halftone {

// The bytes of a .pdmodel with one block: the entry's feeds, cells and values
// as variables (a dim that depends on the batch is -1), its ops with their
// slots and attributes, and an `assign` for each commit. Types of ops, dtypes,
// roles and the casts' attributes are Paddle's where Paddle has them. The op
// that makes the loss has role 256. No op has a body: programs from before
// fusion.
std::string ToPaddleProgram(const Program& program, const Entry& entry);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_EXPORT_PADDLE_EXPORT_H_

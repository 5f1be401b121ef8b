// The program of a train step, to be drawn.
#ifndef HALFTONE_RUNTIME_TRAIN_PROGRAM_GRAPH_H_
#define HALFTONE_RUNTIME_TRAIN_PROGRAM_GRAPH_H_

#include "graph/ir/program.h"
#include "runtime/report/run_events.h"

namespace halftone {
namespace runtime {

// A node for each feed, each cell that the train entry reads and each of its
// ops, a fusion under its pattern's name; with the ops' precisions and roles.
// Empty without a train entry.
GraphEvent GraphOf(const Program& program);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_PROGRAM_GRAPH_H_

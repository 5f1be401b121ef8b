// Layers that ONNX states in parts, as one op of ours each.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_PARTS_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_PARTS_H_

#include "absl/status/status.h"
#include "graph/import/onnx_graph.h"

namespace halftone {

// What PyTorch computes as one and its exporter writes as several nodes:
//   matmul(x, transpose(w)) + b    matmul(x, w, b) with trans_y
//   x / 2 * (1 + erf(x / sqrt 2))  gelu(x), in whatever order it multiplies;
//                                  likewise the form with tanh
//   x * sigmoid(beta x)            swish(x)
//   an instance norm of [N, groups, ...], back in x's dims, * weight + bias of
//   [C, 1, ...]                    group_norm(x, weight, bias), or without them
// One rounding takes the place of several then, in low precision as in
// PyTorch, and the compiler's patterns know the op. The result keeps its name.
// What lies between must have no other reader and be wanted by nobody; the ops
// that made it are left to DropUnneeded, which has to have dropped what nobody
// reads before, too.
absl::Status JoinParts(OnnxGraph* graph);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_PARTS_H_

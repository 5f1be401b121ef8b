// Norms that ONNX states in parts, as one op of ours each.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_NORM_PARTS_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_NORM_PARTS_H_

#include "graph/import/onnx_graph.h"

namespace halftone {

//   x / sqrt(mean(x x) + epsilon)         rms_norm(x), of the last dim, with
//   x * rsqrt(mean(x x) + epsilon) * w    Scale where w is [its size]
// As JoinParts, of which it is a part.
void JoinRmsNorms(OnnxGraph* graph);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_NORM_PARTS_H_

// Transposes around ops that know one order of dims alone.
#ifndef HALFTONE_GRAPH_IMPORT_TRANSPOSES_H_
#define HALFTONE_GRAPH_IMPORT_TRANSPOSES_H_

#include "graph/io/model_reader.h"

namespace halftone {

// Moves transposes behind element-wise ops and concats of transposed values,
// where one that undoes them leaves none of either: what [N, H, W, C] nets
// have between two convolutions is computed as [N, C, H, W]. Moved ones that
// nobody needs are left to DropUnneeded.
void MoveTransposes(proto::Model* model);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_TRANSPOSES_H_

// Models made of a part of another one's ops.
#ifndef HALFTONE_GRAPH_SUBSET_MODEL_SUBSET_H_
#define HALFTONE_GRAPH_SUBSET_MODEL_SUBSET_H_

#include <vector>

#include "graph/io/model_reader.h"

namespace halftone {

// The model with these of its ops (indices that rise), and still one: what
// reads a value of an op that is gone reads an input of that op which has its
// type, else a new feed of the value's name and type, else goes, too. Feeds,
// parameters, loss, metrics and outputs that nothing is left of go; lines do.
// No ops: none could stay.
ModelFile WithOps(const ModelFile& source, const std::vector<int>& ops);

// The model up to op `last`, in the file's order, with the mean of that op's
// first output as its loss; no ops where it has none.
ModelFile WithLossBehind(const ModelFile& source, int last);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SUBSET_MODEL_SUBSET_H_

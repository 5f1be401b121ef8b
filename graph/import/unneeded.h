// What an imported model has for nobody.
#ifndef HALFTONE_GRAPH_IMPORT_UNNEEDED_H_
#define HALFTONE_GRAPH_IMPORT_UNNEEDED_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "graph/io/model_reader.h"

namespace halftone {

// What outputs, loss and metrics of the model name.
absl::flat_hash_set<std::string> WantedValues(const proto::Model& model);

// Drops ops, feeds, parameters and statistics that no output, loss or metric
// needs. Ops stand in an order in which what they read comes first.
void DropUnneeded(proto::Model* model);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_UNNEEDED_H_

// The graph that a model's ops form by the names of their values.
#ifndef HALFTONE_GRAPH_IO_MODEL_GRAPH_H_
#define HALFTONE_GRAPH_IO_MODEL_GRAPH_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "graph/base/error_list.h"
#include "graph/io/model_reader.h"
#include "graph/ir/program.h"

namespace halftone {

// The op's name: given, else its first output's in the file.
const std::string& NameOf(const proto::OpNode& node);

// The names of the block's live values and of the program's cells, for
// "nearest" hints; empty where there are too many to compare.
std::vector<std::string> ValueNames(const Block& block);

// Indices of the model's sound ops in a topological order: the one that is
// first in the file's order, so the file's own where that is topological.
// Feeds and cells are in `block` and its program. Errors name file, line, op
// and slot: unknown ops, names given twice, values that nothing defines (with
// the nearest name), cycles (with the ops on one). `lost` are names whose
// definition is wrong: nothing is said of those that read them, and the
// results of wrong ops are added.
std::vector<int> OrderOps(const ModelFile& file, const Block& block,
                          absl::flat_hash_set<std::string>* lost,
                          ErrorList* errors);

// Adds the names of what the op would define.
void AddResults(const proto::OpNode& node,
                absl::flat_hash_set<std::string>* names);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_MODEL_GRAPH_H_

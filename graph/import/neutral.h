// Parts of Paddle's ops that ours lack because they change nothing here.
#ifndef HALFTONE_GRAPH_IMPORT_NEUTRAL_H_
#define HALFTONE_GRAPH_IMPORT_NEUTRAL_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/io/model_reader.h"
#include "graph/ir/attr.h"

namespace halftone {

// Whether an attribute of Paddle's, which our op does not have, tells where or
// how fast the op runs, or has the value at which it does nothing. `value`:
// null for one of a kind that ours are never.
bool ChangesNothing(absl::string_view name, const AttrValue* value);

// As errors show it: "[1, 2]", "\"SAME\"".
std::string TextOf(const AttrValue& value);

// Takes such attributes, and Paddle's outputs for its own gradients (XShape,
// Mask, SavedMean) where nothing reads them, out of a model that was written by
// hand. Returns what, and of how many ops: "use_cudnn (2 ops)".
std::vector<std::string> DropNeutral(proto::Model* model);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_NEUTRAL_H_

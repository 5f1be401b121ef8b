// Models that Halftone can write out: `halftone zoo resnet50 -o x.pbtxt`.
#ifndef HALFTONE_GRAPH_IO_ZOO_H_
#define HALFTONE_GRAPH_IO_ZOO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/program.pb.h"

namespace halftone {

// In the order in which `halftone zoo` lists them.
std::vector<std::string> ZooNames();

// An unknown name (kUsage) gets the nearest one. mnist_convnet, mlp and
// small_resnet are those of models/.
absl::StatusOr<proto::Model> ZooModel(absl::string_view name);

// The model as .pbtxt, an op to a line, parameters before the ops that read
// them. Parsing it gives the same message.
std::string PrintModel(const proto::Model& model);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_ZOO_H_

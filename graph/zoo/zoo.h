// Models that Halftone can write out: `halftone zoo resnet50 -o x.pbtxt`.
#ifndef HALFTONE_GRAPH_ZOO_ZOO_H_
#define HALFTONE_GRAPH_ZOO_ZOO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/program.pb.h"

namespace halftone {

// What a model may be made with instead of what was published.
struct ZooOptions {
  std::optional<int64_t> image_size;
  std::optional<int64_t> classes;
  std::optional<int64_t> layers;    // blocks of a transformer
  std::optional<int64_t> width;     // base channels, or of the hidden states
  std::optional<int64_t> sequence;  // tokens
  std::string head;                 // "pretraining" or "classification"
  std::string norm;                 // "batch", "sync" or "group"
};

// In the order in which `halftone zoo` lists them.
std::vector<std::string> ZooNames();
// What a model takes, as flags: {"image-size", "classes"}. Empty for an unknown
// name.
std::vector<std::string> ZooOptionNames(absl::string_view name);

// The example strategy, as published: "models/resnet_o1.pbtxt".
std::string ZooStrategy(absl::string_view name);

// mnist_convnet, mlp and small_resnet are those of models/. Errors (kUsage): an
// unknown name, an option that the model does not take, a size that it cannot
// have.
absl::StatusOr<proto::Model> ZooModel(absl::string_view name,
                                      const ZooOptions& options = {});

}  // namespace halftone

#endif  // HALFTONE_GRAPH_ZOO_ZOO_H_

// What the parameters of a zoo model are called where it was published, so that
// weights can be taken from there and handed back.
#ifndef HALFTONE_GRAPH_ZOO_SOURCE_NAMES_H_
#define HALFTONE_GRAPH_ZOO_SOURCE_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {

// A parameter or running statistic.
struct NamedTensor {
  std::string name;
  int rank = 0;
};

struct SourceName {
  std::string name;
  // Other spellings of it that files have.
  std::vector<std::string> others = {};
  // The two dims of a matrix product's weight are the other way round there.
  bool transposed = false;
};

// "torchvision", "hf" (Hugging Face) and "pytorch-unet"
// (milesial/Pytorch-UNet).
std::vector<std::string> NamingConventions();
// Those that a model of this name has; none if it is not of the zoo.
std::vector<std::string> ConventionsOf(absl::string_view model);

// One per tensor, in their order. Errors (kUsage): an unknown convention, or
// one that the model does not have.
absl::StatusOr<std::vector<SourceName>> SourceNames(
    absl::string_view convention, absl::string_view model,
    absl::Span<const NamedTensor> tensors);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_ZOO_SOURCE_NAMES_H_

// A smaller model that fails as a large one does: ops are taken out while it
// still does.
#ifndef HALFTONE_TOOLS_REDUCE_REDUCE_MODEL_H_
#define HALFTONE_TOOLS_REDUCE_REDUCE_MODEL_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/io/model_reader.h"

namespace halftone {
namespace tools {

// Whether a model fails as the whole one does.
using Fails = absl::FunctionRef<absl::StatusOr<bool>(const ModelFile&)>;

struct Reduced {
  ModelFile model;
  int ops_before = 0, asked = 0;
};

// Delta debugging over ops (tools/search/smallest_set.h,
// graph/subset/model_subset.h), then with the loss
// moved to a mean right behind what is left, and once more. Of the result no
// op can be taken out alone. Errors: kUsage if the whole model does not fail;
// those of `fails`.
absl::StatusOr<Reduced> ReduceModel(const ModelFile& source, Fails fails);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REDUCE_REDUCE_MODEL_H_

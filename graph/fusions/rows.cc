// Ops along rows with what makes their elements.
#include "graph/fusions/families.h"

namespace halftone {
namespace fusions {

// As in attention: the scores are scaled on their way in.
FusionPattern ScaleSoftmax() {
  return FusionPattern("scale_softmax", "softmax(scale(X))")
      .Last("softmax", "softmax")
      .Hidden("scale", "scale", {"softmax.X"})
      .KeyedBy("scale.X");
}

}  // namespace fusions
}  // namespace halftone

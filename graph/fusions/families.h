// The patterns' declarations, by family: one file each.
#ifndef HALFTONE_GRAPH_FUSIONS_FAMILIES_H_
#define HALFTONE_GRAPH_FUSIONS_FAMILIES_H_

#include "graph/fusions/fusion_pattern.h"

namespace halftone {

class OpSchema;

namespace fusions {

// norm_conv.cc
FusionPattern NormConvStats();
FusionPattern ConvStats();
FusionPattern NormConvGradFilter();
FusionPattern ConvGradNorm();

// relu_grad_sums.cc
FusionPattern ReluGradNorm();
FusionPattern ReluGradBias();

// products.cc
FusionPattern ConvBiasRelu();
FusionPattern MatmulBiasRelu();
FusionPattern MatmulGelu();
FusionPattern MatmulGeluGrad();
FusionPattern MatmulReluGrad();
FusionPattern MatmulBiasGrad();

// elementwise.cc
FusionPattern NormElementwise();
FusionPattern ElementwiseChain();
// Whether chains take the op: element-wise on tensors of one dtype, and no
// copy. kernels/common/elementwise_functors.h computes each of them.
bool JoinsChains(const OpSchema& op);

}  // namespace fusions
}  // namespace halftone

#endif  // HALFTONE_GRAPH_FUSIONS_FAMILIES_H_

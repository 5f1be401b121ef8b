// The list of all patterns. Each is declared in its family's file.
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
FusionPattern RecomputeConvGradFilter();
FusionPattern ConvGradNorm();
FusionPattern ConvGradAddNorm();
// Of a norm that is made again: it is the one whose gradient "sums" is of.
bool IsThatOfSums(const FusionPattern::Context& norm);
// Of an op that adds: two values, and both of the type that it makes.
bool AddsTwo(const FusionPattern::Context& sum);

// relu_grad_sums.cc
FusionPattern RecomputeReluGradNorm();
FusionPattern ReluGradNorm();
FusionPattern ReluGradNormBits();
FusionPattern ReluGradBias();

// max_pool.cc
FusionPattern NormMaxPool();
FusionPattern MaxPoolGradNorm();
FusionPattern MaxPoolGradApply();

// products.cc
FusionPattern ConvBiasRelu();
FusionPattern MatmulBiasRelu();
FusionPattern MatmulGelu();
FusionPattern MatmulGeluGrad();
FusionPattern MatmulReluGrad();
FusionPattern MatmulBiasGrad();

// rows.cc
FusionPattern ScaleSoftmax();

// elementwise.cc
FusionPattern NormElementwise();
FusionPattern NormElementwiseBits();
FusionPattern NormGradApplyTwo();
FusionPattern ElementwiseChain();
// Whether chains take the op: element-wise on tensors of one dtype, and no
// copy. kernels/common/elementwise_functors.h computes each of them.
bool JoinsChains(const OpSchema& op);

// All, in the order in which they are tried: larger groups before their parts,
// what makes a value with its sums before the sums alone, and those before the
// products that read it.
inline constexpr FusionPattern (*kPatterns[])() = {
    NormConvStats,
    ConvStats,
    NormConvGradFilter,
    RecomputeConvGradFilter,
    ConvGradNorm,
    ConvGradAddNorm,
    RecomputeReluGradNorm,
    ReluGradNorm,
    ReluGradNormBits,
    NormMaxPool,
    MaxPoolGradNorm,
    MaxPoolGradApply,
    ConvBiasRelu,
    MatmulBiasRelu,
    MatmulGelu,
    MatmulGeluGrad,
    MatmulReluGrad,
    ReluGradBias,
    MatmulBiasGrad,
    ScaleSoftmax,
    NormElementwise,
    NormElementwiseBits,
    NormGradApplyTwo,
    ElementwiseChain,
};

}  // namespace fusions
}  // namespace halftone

#endif  // HALFTONE_GRAPH_FUSIONS_FAMILIES_H_

// What the patterns of a product with what a library's epilogue does share.
#ifndef HALFTONE_PASSES_LOWER_PATTERNS_MATMUL_EPILOGUE_H_
#define HALFTONE_PASSES_LOWER_PATTERNS_MATMUL_EPILOGUE_H_

#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

// Whether the op is a matmul of one dtype, its result's, too.
bool IsEpilogueProduct(const Block& block, OpId op);

// Whether the op is a reduce_sum of one dtype over all dims but the last.
bool SumsRows(const Block& block, OpId op);

// {product, gradient} or, of one matrix, {product, gradient, sum}, of which
// `last` stands last: the gradient `type` of an activation, of a product that
// nothing else reads, and the sum of its rows.
OpGroup MatchActivationGrad(const Block& block, OpId last, const OpSchema* type,
                            const HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERNS_MATMUL_EPILOGUE_H_

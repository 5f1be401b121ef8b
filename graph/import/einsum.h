// Sums of products by named dims, as products of matrices.
#ifndef HALFTONE_GRAPH_IMPORT_EINSUM_H_
#define HALFTONE_GRAPH_IMPORT_EINSUM_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/import/op_writer.h"
#include "graph/ir/type.h"

namespace halftone {

struct EinsumOperand {
  std::string value;
  Dims dims;
};

// Writes "bij,bjk->bik" of the operands, a term for each, in numpy's notation;
// without "->", its implicit form. Returns the result, or "" and what is wrong;
// a letter that one term has twice (a diagonal) is.
std::string WriteEinsum(OpWriter& ops, absl::string_view equation,
                        const std::vector<EinsumOperand>& operands,
                        std::string* wrong);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_EINSUM_H_

// Dims that a program of Paddle's computes, known before it runs.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_SIZES_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_SIZES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/import/paddle_ops.h"

namespace halftone {

// A number, or its product with the first dim of a variable, the batch's.
struct PaddleSize {
  int64_t number = 0;
  std::string of;  // empty: a number alone

  bool is_number() const { return of.empty(); }
};
using PaddleSizes = std::vector<std::optional<PaddleSize>>;

// The whole numbers that a scalar or vector holds, as far as they can be told
// from shapes, constants, and slices, joins and arithmetic of them; nullopt:
// not even how many there are.
std::optional<PaddleSizes> SizesOf(const std::string& variable,
                                   PaddleScope& scope);
// The sole one; nullopt: it is not known.
std::optional<PaddleSize> SizeOf(const std::string& variable,
                                 PaddleScope& scope);
// Those of a vector or, where there is none, of variables with one each: the
// forms in which Paddle's ops take shapes. Nullopt: not all are known, which is
// refused.
std::optional<std::vector<PaddleSize>> SizesIn(const paddle::OpDesc& op,
                                               const char* whole,
                                               const char* list,
                                               PaddleScope& scope,
                                               ImportedOp* result);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_SIZES_H_

// What the ops' Infer functions share: axes, broadcasting, reduced dims, and
// errors that say what to do. Kernels use the parts that need no InferContext,
// so that shape rules are written once. Windows are in windows.h.
#ifndef HALFTONE_GRAPH_OPS_INFER_HELPERS_H_
#define HALFTONE_GRAPH_OPS_INFER_HELPERS_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/type.h"
#include "graph/schema/infer_context.h"

namespace halftone {
namespace ops {

using InferFunction = std::function<absl::Status(InferContext&)>;

// Ends of ranges that have none.
inline constexpr int kAnyRank = std::numeric_limits<int>::max();
inline constexpr double kMaxDouble = std::numeric_limits<double>::max();

// ---- Errors: "<op> (<type>): slot S: expected E, found F; <advice>".

// `slot` holds one value.
absl::Status SlotMismatch(const InferContext& c, absl::string_view slot,
                          absl::string_view expected,
                          absl::string_view advice = "");
// The i-th value of a list: "slot X[2]: ...".
absl::Status MemberMismatch(const InferContext& c, absl::string_view slot,
                            int i, absl::string_view expected,
                            absl::string_view advice = "");
// "attribute strides: expected ..., found [0, 1]; <advice>".
absl::Status AttrMismatch(const InferContext& c, absl::string_view attr,
                          absl::string_view expected,
                          absl::string_view advice = "");
// "[B,128]".
std::string PrintDims(const InferContext& c, absl::Span<const Dim> dims);

// ---- Simple rules.

// Errors unless the slot's rank is in [low, high].
absl::Status ExpectRank(const InferContext& c, absl::string_view slot, int low,
                        int high, absl::string_view shape);
absl::Status ExpectRank(const InferContext& c, absl::string_view slot, int rank,
                        absl::string_view shape);
// Errors unless the slot, where present, has exactly these dims.
absl::Status ExpectDims(const InferContext& c, absl::string_view slot,
                        absl::Span<const Dim> dims, absl::string_view why);
// Errors unless each slot, where present, is of rank 0.
absl::Status ExpectScalars(const InferContext& c,
                           std::initializer_list<absl::string_view> slots);
// Errors unless the string attribute is one of `words`.
absl::Status ExpectWord(const InferContext& c, absl::string_view attr,
                        std::initializer_list<absl::string_view> words);
// Errors unless the float attribute is finite and in [low, high].
absl::Status ExpectRange(const InferContext& c, absl::string_view attr,
                         double low, double high);

// All inputs named have equal dims, and so has the output.
InferFunction SameDims(std::vector<std::string> inputs, std::string output);
// The output has rank 0; the inputs are not looked at.
InferFunction ScalarOut(std::string output);

// ---- Axes.

// An axis in [-rank, rank) as one in [0, rank).
absl::StatusOr<int> Axis(const InferContext& c, absl::string_view attr,
                         int rank);
// Which axes `dim` and `reduce_all` (if the op has it) reduce; an empty `dim`
// is all. nullopt: an axis is out of range or named twice.
std::optional<std::vector<bool>> ReducedAxes(absl::Span<const int64_t> dim,
                                             bool reduce_all, int rank);
// `dims` without the reduced ones, or with ones in their place.
Dims ReduceDims(absl::Span<const Dim> dims, const std::vector<bool>& reduced,
                bool keep_dim);

// The axes that the op's `dim` and `reduce_all` (if it has that) reduce.
absl::StatusOr<std::vector<bool>> ReducedAxes(const InferContext& c, int rank);
// Out = X without the axes of `dim`, or with ones in their place (`keep_dim`).
absl::Status InferReduce(InferContext& c);

// Product of the dims.
Dim Product(absl::Span<const Dim> dims);
// a + b; nullopt where that is no coefficient x product of symbols.
std::optional<Dim> Sum(const Dim& a, const Dim& b);

// ---- Broadcasting. Two dims go together if they are equal (symbols too) or
// one of them is the constant 1.

// `dims` with ones added to be aligned with an operand of rank `rank`: at its
// end for axis -1, at its dim `axis` otherwise (then trailing ones of `dims`
// that do not fit are dropped, as Paddle does). nullopt: it does not fit.
std::optional<Dims> AlignDims(absl::Span<const Dim> dims, int rank,
                              int64_t axis);
// The dims of an element-wise op on x and y; nullopt: they do not go together.
std::optional<Dims> BroadcastDims(absl::Span<const Dim> x,
                                  absl::Span<const Dim> y, int64_t axis);
// Out = the dims of X and Y, broadcast; `axis` as above.
absl::Status InferBinary(InferContext& c);
// The axis with which prelu's Alpha is aligned with X, by its mode.
int64_t AlphaAxis(absl::string_view mode, int alpha_rank);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_INFER_HELPERS_H_

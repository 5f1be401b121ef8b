// How ops of Paddle's that differ from ours become ours: what the conversions
// share, and those that have files of their own.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_RULES_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_RULES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/import/paddle_ops.h"
#include "graph/ir/attr.h"

namespace halftone {

struct Rename {
  absl::string_view paddle, ours;  // ours empty: it says nothing to us
};

struct Rule;
// Writes what becomes of `op` into `result`.
using Conversion = void(const paddle::OpDesc& op, const Rule& rule,
                        PaddleScope& scope, ImportedOp* result);

// By the schema of the op's name, slots and attributes.
Conversion ByName;

struct Rule {
  absl::string_view type;  // Paddle's
  Conversion* convert = ByName;
  std::vector<Rename> attrs = {};
  absl::string_view why = "";  // of a refusal
};

// Sets an attribute of the op that has been added last.
void SetLast(absl::string_view name, AttrValue value, ImportedOp* result);

// paddle_channels_last.cc
// Whether the op's tensors have their channels last.
bool HasChannelsLast(const paddle::OpDesc& op);
// By its rule, as one whose channels come first, between transposes.
Conversion ImportChannelsLast;

// paddle_elementwise.cc
Conversion Arithmetic, DivideDown, ExtremeNumber, ExtremeOfTies, FiniteOrNot,
    Function, Increment, Interpolate, Multiplex, OfBits, OfOneNumber;

// paddle_losses.cc
Conversion CountCorrect, CrossEntropy, NegativeLogLikelihood;
// paddle_recurrent.cc
Conversion Filled, Recurrent;

// paddle_constants.cc
Conversion AssignValue, SequenceMask;
// The number that all `values` of an op are; nullopt: they are several.
std::optional<double> OneConstantOf(const paddle::OpDesc& op);

// paddle_moves.cc
Conversion BatchProduct, ChannelShuffle, ExpandAs, LogSumExp, MaskedSoftmax,
    MeshGrid, Product, Roll, TrilTriu;

// paddle_parts.cc
// Adds type(X = x, Y = y) -> Out = out; y may be empty.
void AddNode(const char* type, const std::string& x, const std::string& y,
             const std::string& out, ImportedOp* result);
Conversion CountElements, FillLike, Nothing, ReduceLogical, Scaled, Summed;

// paddle_places.cc
Conversion AffinePlaces, Cropped, Diagonal, EvenlySpaced, GreatestOfChannels,
    Identity, OnADiagonal, Repeated, SampledByIndex, ShiftedFrames, Sorted,
    Unbound;

// paddle_scatters.cc
Conversion AddedByRows, AddedSlices, GatherByRows, PutByIndex, SlicesSet;

// paddle_products.cc
Conversion AddedProduct, BilinearProduct, Distance, DotProduct, EinsumOf,
    FrobeniusNorm, Kronecker, MatrixTimesVector, Normalized;

// paddle_shapes.cc
Conversion Expanded, FilledAsBatch, FilledByShape, Range, Reshaped,
    SlicedBySizes, TiledBySizes;

// paddle_windows.cc
Conversion Folded, Pooled, Unfolded, Windowed;

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_RULES_H_

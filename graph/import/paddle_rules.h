// How ops of Paddle's that differ from ours become ours: what the conversions
// share, and those that have files of their own.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_RULES_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_RULES_H_

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
using Convert = void (*)(const paddle::OpDesc& op, const Rule& rule,
                         PaddleScope& scope, ImportedOp* result);

// By the schema of the op's name, slots and attributes.
void ByName(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);

struct Rule {
  absl::string_view type;  // Paddle's
  Convert convert = ByName;
  std::vector<Rename> attrs = {};
  absl::string_view why = "";  // of a refusal
};

// Sets an attribute of the op that has been added last.
void SetLast(absl::string_view name, AttrValue value, ImportedOp* result);

// paddle_channels_last.cc
// Whether the op's tensors have their channels last.
bool HasChannelsLast(const paddle::OpDesc& op);
// By its rule, as one whose channels come first, between transposes.
void ImportChannelsLast(const paddle::OpDesc& op, const Rule& rule,
                        PaddleScope& scope, ImportedOp* result);

// paddle_elementwise.cc
void Arithmetic(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                ImportedOp* result);
void DivideDown(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                ImportedOp* result);
void ExtremeNumber(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void ExtremeOfTies(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void FiniteOrNot(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                 ImportedOp* result);
void Function(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void Increment(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
               ImportedOp* result);
void Interpolate(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                 ImportedOp* result);
void OfBits(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);
void OfOneNumber(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                 ImportedOp* result);
void Multiplex(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
               ImportedOp* result);
// paddle_losses.cc
void CountCorrect(const paddle::OpDesc& op, const Rule& rule,
                  PaddleScope& scope, ImportedOp* result);
void CrossEntropy(const paddle::OpDesc& op, const Rule& rule,
                  PaddleScope& scope, ImportedOp* result);
void NegativeLogLikelihood(const paddle::OpDesc& op, const Rule& rule,
                           PaddleScope& scope, ImportedOp* result);
// paddle_recurrent.cc
void Filled(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);
void Recurrent(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
               ImportedOp* result);

// paddle_constants.cc
void AssignValue(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                 ImportedOp* result);
void SequenceMask(const paddle::OpDesc& op, const Rule& rule,
                  PaddleScope& scope, ImportedOp* result);

// paddle_moves.cc
void BatchProduct(const paddle::OpDesc& op, const Rule& rule,
                  PaddleScope& scope, ImportedOp* result);
void ChannelShuffle(const paddle::OpDesc& op, const Rule& rule,
                    PaddleScope& scope, ImportedOp* result);
void ExpandAs(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void LogSumExp(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
               ImportedOp* result);
void MaskedSoftmax(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void MeshGrid(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void Product(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
             ImportedOp* result);
void Roll(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
          ImportedOp* result);
void TrilTriu(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);

// paddle_parts.cc
// Adds type(X = x, Y = y) -> Out = out; y may be empty.
void AddNode(const char* type, const std::string& x, const std::string& y,
             const std::string& out, ImportedOp* result);
void CountElements(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void FillLike(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void Nothing(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
             ImportedOp* result);
void ReduceLogical(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void Scaled(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);
void Summed(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);

// paddle_places.cc
void Cropped(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
             ImportedOp* result);
void Diagonal(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void EvenlySpaced(const paddle::OpDesc& op, const Rule& rule,
                  PaddleScope& scope, ImportedOp* result);
void Folded(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);
void GatherByRows(const paddle::OpDesc& op, const Rule& rule,
                  PaddleScope& scope, ImportedOp* result);
void GreatestOfChannels(const paddle::OpDesc& op, const Rule& rule,
                        PaddleScope& scope, ImportedOp* result);
void Identity(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void OnADiagonal(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                 ImportedOp* result);
void Repeated(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void SampledByIndex(const paddle::OpDesc& op, const Rule& rule,
                    PaddleScope& scope, ImportedOp* result);
void ShiftedFrames(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void Sorted(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);
void Unbound(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
             ImportedOp* result);
void Unfolded(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);

// paddle_products.cc
void AddedProduct(const paddle::OpDesc& op, const Rule& rule,
                  PaddleScope& scope, ImportedOp* result);
void BilinearProduct(const paddle::OpDesc& op, const Rule& rule,
                     PaddleScope& scope, ImportedOp* result);
void Distance(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void DotProduct(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                ImportedOp* result);
void EinsumOf(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void FrobeniusNorm(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void Kronecker(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
               ImportedOp* result);
void MatrixTimesVector(const paddle::OpDesc& op, const Rule& rule,
                       PaddleScope& scope, ImportedOp* result);
void Normalized(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
                ImportedOp* result);

// paddle_shapes.cc
void Expanded(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);
void FilledAsBatch(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void FilledByShape(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void TiledBySizes(const paddle::OpDesc& op, const Rule& rule,
                  PaddleScope& scope, ImportedOp* result);
void SlicedBySizes(const paddle::OpDesc& op, const Rule& rule,
                   PaddleScope& scope, ImportedOp* result);
void Reshaped(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);

// paddle_windows.cc
void Pooled(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result);
void Windowed(const paddle::OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_RULES_H_

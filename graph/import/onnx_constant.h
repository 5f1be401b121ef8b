// Values of an ONNX graph that are known at import, and the ops that compute
// them: shapes and what is made of them. A size may be the batch's, B * 12.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_CONSTANT_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_CONSTANT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/import/onnx_file.h"
#include "graph/ir/type.h"

namespace halftone {

struct OnnxConstant {
  DType dtype{};
  std::vector<int64_t> dims;
  // Row-major; floats in `reals`, all else, bool too, in `ints`.
  std::vector<Dim> ints;
  std::vector<double> reals;

  bool is_float() const;
  int64_t elements() const;
  // All of them; nullopt: one is the batch's, or they are floats.
  std::optional<std::vector<int64_t>> Integers() const;
  // The one element that all are equal to; nullopt: they differ, there are
  // none, or it is the batch's.
  std::optional<double> Uniform() const;
};

// Larger ones are left to the program.
inline constexpr int64_t kMostKnownElements = 1 << 16;

// Of these dims; -1: more than that, were those of 0 one, or negative dims.
int64_t KnownElements(const std::vector<int64_t>& dims);

// Floats are f32 whatever they were kept in. Nullopt: too many elements.
std::optional<OnnxConstant> ConstantOf(const OnnxTensor& tensor);
// Row-major bytes; it has no element that is the batch's.
std::string BytesOf(const OnnxConstant& constant);

// [n] i64.
OnnxConstant ListOf(std::vector<Dim> values);

// What the node makes of known values; null inputs are left out ones. Nullopt:
// an op or values of which that cannot be said.
std::optional<OnnxConstant> Evaluate(
    const onnx::NodeProto& node,
    const std::vector<const OnnxConstant*>& inputs);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_CONSTANT_H_

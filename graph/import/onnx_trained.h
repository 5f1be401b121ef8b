// Which initialisers of an ONNX file training changes.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_TRAINED_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_TRAINED_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "graph/import/onnx_file.h"

namespace halftone {

// ONNX does not tell a parameter from a constant or a buffer: all are
// initialisers. Floats are trained unless something says that they are not:
//   the file     PyTorch 2's exporter says of each initialiser's value whether
//                it is a PARAMETER or a BUFFER (rotary tables, masks), and its
//                optimiser what it folded one from. Then all that is neither is
//                a constant; what was folded is trained where it is made of an
//                attribute of a module ("layers.0.weight", most often turned)
//                and of no sine or cosine (a table of positions).
//   its name     a single number of rank 0 that is called as a value is
//                ("onnx::Mul_3"), not as an attribute.
//   its values   an infinite one: a mask.
class OnnxTrained {
 public:
  // `graph` outlives it.
  explicit OnnxTrained(const onnx::GraphProto& graph);

  // `raw`: as OnnxFile has it.
  bool Is(const onnx::TensorProto& tensor, absl::string_view raw) const;
  // The one initialiser of the program that was exported that it was made of
  // and of nothing else: itself, or what the exporter's optimiser has turned.
  // Two of one source that have its elements are one parameter, tied. Empty:
  // there were several.
  std::string SourceOf(const onnx::TensorProto& tensor) const;

 private:
  // By name, as the file says it.
  absl::flat_hash_map<absl::string_view, absl::string_view> kinds_, sources_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_TRAINED_H_

// Ops that ONNX and Halftone both have, element by element, but for names: the
// import and the export (graph/export) read the same table.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_SAME_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_SAME_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace halftone {

struct OnnxSame {
  struct Attr {  // a float
    absl::string_view onnx, ours;
    double otherwise;  // ONNX's default
  };
  absl::string_view onnx, ours;
  // X; or X and Y, whose last dims go together.
  int inputs = 1;
  std::vector<Attr> attrs = {};
};

const std::vector<OnnxSame>& OnnxSameOps();
// By ONNX's name; null: it is none of them.
const OnnxSame* FindOnnxSame(absl::string_view onnx);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_SAME_H_

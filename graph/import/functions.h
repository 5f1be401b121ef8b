// Functions of one tensor that are several ops of ours, and what the formats
// call them.
#ifndef HALFTONE_GRAPH_IMPORT_FUNCTIONS_H_
#define HALFTONE_GRAPH_IMPORT_FUNCTIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/import/op_writer.h"

namespace halftone {

struct ImportedFunction {
  struct Setting {
    absl::string_view name;  // of the attribute
    double otherwise;
  };

  absl::string_view paddle, onnx;  // empty: that format does not have it
  // Writes it, of floats of any dims, and returns its result; `settings` as
  // they are listed.
  std::string (*write)(OpWriter& ops, const std::string& x,
                       const std::vector<double>& settings);
  std::vector<Setting> of_paddle = {}, of_onnx = {};
};

const std::vector<ImportedFunction>& ImportedFunctions();
// By the format's name of it; null: there is none.
const ImportedFunction* FindPaddleFunction(absl::string_view type);
const ImportedFunction* FindOnnxFunction(absl::string_view type);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_FUNCTIONS_H_

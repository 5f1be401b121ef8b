// Functions that are several ops of ours: of one tensor, with what the formats
// call them, and others that both have.
#ifndef HALFTONE_GRAPH_IMPORT_FUNCTIONS_H_
#define HALFTONE_GRAPH_IMPORT_FUNCTIONS_H_

#include <cstdint>
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

// Whether there is one: of sizes of 1 or more, and not too many pixels.
bool HasAffineGrid(int64_t height, int64_t width);
// Where the affine maps theta, f32[batch, 2, 3], take the pixels of an image of
// this size: [batch, height, width, 2], as grid_sampler reads them.
std::string AffineGrid(OpWriter& ops, const std::string& theta,
                       const Dim& batch, int64_t height, int64_t width,
                       bool align_corners);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_FUNCTIONS_H_

// A program of Paddle's as a model: `halftone import x.pdmodel`.
//
// What is kept is the forward part: ops whose role is forward or loss, in block
// 0. Variables keep their names.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_IMPORT_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_IMPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/import/imported_model.h"
#include "graph/import/paddle_program.h"

namespace halftone {

struct PaddleOptions {
  std::string name;  // of the model
  // The value that is trained; empty: what the op with role 256 makes, if any.
  std::string loss;
  // Null: none, Paddle's defaults are taken.
  const paddle::ProgramDesc* startup = nullptr;
  // By feed: dims in place of those that the program has.
  std::map<std::string, std::vector<int64_t>> dims;
};

using PaddleModel = ImportedModel;

// `file` names it in errors (kModel): what cannot be taken is told at once
// (refusals.h); then what is wrong with the model that came out.
absl::StatusOr<PaddleModel> ImportPaddle(const paddle::ProgramDesc& program,
                                         const std::string& file,
                                         const PaddleOptions& options);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_IMPORT_H_

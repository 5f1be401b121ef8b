// Where the model is that a verb's positional argument names.
#ifndef HALFTONE_TOOLS_COMMON_MODEL_PATH_H_
#define HALFTONE_TOOLS_COMMON_MODEL_PATH_H_

#include <string>

#include "absl/status/statusor.h"

namespace halftone {
namespace tools {

// What may be named: a file of any kind; a run directory (--out of a run),
// whose model is its model.htc; a checkpoint in it (ckpt/step-N) or the ckpt
// directory itself, for the model of that run.
struct ModelPath {
  std::string file;        // the model
  std::string run;         // the run directory; empty: a file was named
  std::string checkpoint;  // the one that was named, else empty
};
// Errors (kModel): a directory that is none of these.
absl::StatusOr<ModelPath> FindModel(const std::string& path);

// What a directory is called, with a slash behind it and as "." from inside,
// too.
std::string NameOfDirectory(const std::string& path);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_MODEL_PATH_H_

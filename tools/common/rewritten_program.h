// The program that a compiled model's passes make before it is lowered to a
// target, in another's format.
#ifndef HALFTONE_TOOLS_COMMON_REWRITTEN_PROGRAM_H_
#define HALFTONE_TOOLS_COMMON_REWRITTEN_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"

namespace halftone {
namespace tools {

struct RewrittenProgram {
  std::string bytes;
  int ops = 0, casts = 0;
};

// As a .pdmodel: the training program with casts, backward, all-reduce and
// update, or what the strategy leaves of it. `path`: a model, a compiled one
// (with its own strategy) or a run directory. Errors: those of a compile.
absl::StatusOr<RewrittenProgram> RewrittenForPaddle(const std::string& path);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_REWRITTEN_PROGRAM_H_

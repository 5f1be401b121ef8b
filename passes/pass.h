// The interface of a compiler pass. A pass takes its options in its
// constructor, shares no mutable state with others, is near-linear in the
// number of ops, and makes ops only through OpBuilder.
#ifndef HALFTONE_PASSES_PASS_H_
#define HALFTONE_PASSES_PASS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

class Pass {
 public:
  virtual ~Pass() = default;
  // "insert-casts"; of a pass inside a group "clean-up.fold-casts". Also the
  // name of its golden cases' folder (with underscores) and of its dump.
  virtual absl::string_view name() const = 0;
  // Whether the program changed. An error leaves the program unusable.
  virtual absl::StatusOr<bool> Run(Program& program) = 0;
  // The same where this pass left the program at `since`, a Program::edit():
  // it need only look at what was edited after that.
  virtual absl::StatusOr<bool> RunAgain(Program& program, uint64_t /*since*/) {
    return Run(program);
  }
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PASS_H_

// A reproducer's compile, again.
#ifndef HALFTONE_TOOLS_COMMON_REPLAY_COMPILE_H_
#define HALFTONE_TOOLS_COMMON_REPLAY_COMPILE_H_

#include <string>

#include "absl/status/status.h"
#include "tools/reproducer/reproducer.h"

namespace halftone {
namespace tools {

// What the compile ends with now: the same error while the bug is there; an
// error (kCompilerBug) that says so where it is another bug.
absl::Status CompileAgain(const Reproducer& reproducer);

// What `halftone replay` prints where that is OK.
std::string FixedText(const Reproducer& reproducer);
std::string FixedJson(const Reproducer& reproducer);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_REPLAY_COMPILE_H_

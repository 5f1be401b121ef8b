// A compile of which the process lives on, whatever becomes of it.
#ifndef HALFTONE_TOOLS_COMMON_COMPILE_APART_H_
#define HALFTONE_TOOLS_COMMON_COMPILE_APART_H_

#include "absl/status/status.h"
#include "tools/reproducer/reproducer.h"

namespace halftone {
namespace tools {

// What a compile, or the passes of `halftone opt`, with these inputs ends with,
// in a child of this process. A check that fails is the error that it is to
// users (kCompilerBug), and so is a signal. The calling thread is the only one.
absl::Status CompileApart(const CompileInputs& inputs);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_COMPILE_APART_H_

// The program that `halftone opt` reads, with what passes are made from.
#ifndef HALFTONE_TOOLS_COMMON_PROGRAM_INPUT_H_
#define HALFTONE_TOOLS_COMMON_PROGRAM_INPUT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "passes/kernel_set.h"
#include "passes/options/options.h"
#include "tools/common/model_flags.h"

namespace halftone {
namespace tools {

struct ProgramInput {
  std::unique_ptr<Program> program;
  passes::Options options;
  passes::KernelSet kernels;
  std::string content, file;  // what was read, and its name
};

// `flags.path`: a program in text form in any state (a dump), as it is; a
// model or a compiled one, the latter with its strategy and target where no
// others are named: the forward program that it is compiled from; - reads
// stdin. Errors: kModel.
absl::StatusOr<ProgramInput> ReadProgram(const ModelFlags& flags);

// The program in a file's bytes, whichever of these it is.
absl::StatusOr<std::unique_ptr<Program>> ProgramIn(const std::string& content,
                                                   const std::string& file);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_PROGRAM_INPUT_H_

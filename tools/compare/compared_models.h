// Which two programs of a model are compared.
#ifndef HALFTONE_TOOLS_COMPARE_COMPARED_MODELS_H_
#define HALFTONE_TOOLS_COMPARE_COMPARED_MODELS_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"

namespace halftone {
namespace tools {

struct ComparedModelsFlags {
  ModelFlags compared;
  // The reference: another model, compiled model or run, a level (O0) or a
  // strategy file, with which the compared model is compiled again.
  std::string against;
  std::string flag = "--against";  // that names it
};
// The words of two paths, --against in place of the second, --batch and the
// flags of a strategy.
void AddComparedModelsFlags(Verb verb, ComparedModelsFlags* flags);

struct ComparedModels {
  CompiledModel compared, reference;
};
// Errors (kUsage): no reference.
absl::StatusOr<ComparedModels> LoadComparedModels(
    const ComparedModelsFlags& flags);

// "mnist_convnet O1 fp16".
std::string ShortName(const CompiledModel& model);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMPARE_COMPARED_MODELS_H_

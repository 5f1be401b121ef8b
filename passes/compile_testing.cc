#include "passes/compile_testing.h"

#include "graph/base/error.h"
#include "graph/io/model_reader.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {

absl::StatusOr<CompiledModel> CompileText(
    const std::string& text, const std::vector<Override>& overrides,
    const CompileFlags& flags) {
  HT_ASSIGN_OR_RETURN(const ModelFile file, ParseModel(text, "m.pbtxt"));
  HT_ASSIGN_OR_RETURN(const Options options,
                      ResolveOptions(StrategyFile{}, overrides));
  return Compile(file, options, AllKernels(), flags);
}

std::string NoteOf(const proto::CompileReport& report,
                   const std::string& code) {
  for (const proto::Note& note : report.note()) {
    if (note.code() == code) return note.text();
  }
  return "";
}

const proto::OpRow* FindOp(const CompiledModel& model,
                           const std::string& name) {
  for (const proto::OpRow& row : model.ops.all()) {
    if (row.name() == name) return &row;
  }
  return nullptr;
}

}  // namespace passes
}  // namespace halftone

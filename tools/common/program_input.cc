#include "tools/common/program_input.h"

#include <string>
#include <utility>

#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/text.h"
#include "graph/import/neutral.h"
#include "graph/text/text.h"
#include "passes/compile.h"
#include "tools/common/model_path.h"

namespace halftone {
namespace tools {
namespace {

absl::StatusOr<std::string> ReadStdin() {
  std::string content;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), stdin)) {
    content.append(buffer, n);
    if (static_cast<int64_t>(content.size()) > kMaxModelBytes) {
      return ModelError("-: expected at most ", WithCommas(kMaxModelBytes),
                        " bytes");
    }
  }
  if (std::ferror(stdin) != 0) return ModelError("-: cannot read");
  return content;
}

struct Source {
  std::unique_ptr<Program> program;
  passes::StrategyFile strategy;
  std::string target;  // empty: this machine
};

absl::StatusOr<Source> Read(const std::string& content,
                            const std::string& path) {
  HT_ASSIGN_OR_RETURN(const FileKind kind, DetectKind(content, path));
  Source source;
  if (kind == FileKind::kTextForm) {
    HT_ASSIGN_OR_RETURN(source.program, Parse(content, path));
    return source;
  }
  ModelFile model;
  if (kind == FileKind::kCompiledModel) {
    HT_ASSIGN_OR_RETURN(CompiledModel compiled,
                        ParseCompiledModel(content, path, /*target=*/""));
    source.strategy = StrategyOf(compiled);
    source.target = compiled.target;
    model = compiled.WholeSource();
  } else {
    HT_ASSIGN_OR_RETURN(model, ParseModel(content, path));
    DropNeutral(&*model.model);
  }
  HT_ASSIGN_OR_RETURN(source.program, BuildProgram(model));
  return source;
}

}  // namespace

absl::StatusOr<ProgramInput> ReadProgram(const ModelFlags& flags) {
  HT_RETURN_IF_ERROR(LoadOpLibraries(flags.op_libraries));
  std::string path = flags.path, content;
  const Doing doing("reading the program", path);
  if (path == "-") {
    HT_ASSIGN_OR_RETURN(content, ReadStdin());
  } else {
    HT_ASSIGN_OR_RETURN(const ModelPath found, FindModel(path));
    path = found.file;
    HT_ASSIGN_OR_RETURN(content, ReadFile(path, kMaxModelBytes));
  }
  HT_ASSIGN_OR_RETURN(Source source, Read(content, path));
  if (!flags.strategy.empty()) {
    HT_ASSIGN_OR_RETURN(source.strategy, passes::ReadStrategy(flags.strategy));
  }
  if (!flags.target.empty()) source.target = flags.target;
  if (source.target.empty()) source.target = ThisMachine();
  HT_ASSIGN_OR_RETURN(const passes::Options options,
                      passes::ResolveOptions(source.strategy, flags.overrides));
  HT_ASSIGN_OR_RETURN(passes::Options effective,
                      passes::OptionsFor(*source.program, options));
  HT_ASSIGN_OR_RETURN(passes::KernelSet kernels, KernelSetFor(source.target));
  return ProgramInput{std::move(source.program), std::move(effective),
                      std::move(kernels), std::move(content), std::move(path)};
}

absl::StatusOr<std::unique_ptr<Program>> ProgramIn(const std::string& content,
                                                   const std::string& file) {
  HT_ASSIGN_OR_RETURN(Source source, Read(content, file));
  return std::move(source.program);
}

}  // namespace tools
}  // namespace halftone

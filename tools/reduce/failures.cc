#include "tools/reduce/failures.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/shell_word.h"
#include "graph/io/model_printer.h"
#include "passes/pipeline.h"
#include "runtime/launch/child_process.h"
#include "tools/common/compile_apart.h"

namespace halftone {
namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr char kModelName[] = "model.pbtxt";
constexpr char kPlace[] = "{}";

bool IsWord(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isalpha(c) && c != '-' && c != '\'') return false;
  }
  return !text.empty();
}

// Runs a command on models, in a folder that goes with it.
class Command {
 public:
  explicit Command(std::string text) : text_(std::move(text)) {}
  ~Command() {
    std::error_code error;
    if (!folder_.empty()) fs::remove_all(folder_, error);
  }
  absl::Status MakeFolder() {
    std::error_code error;
    std::string path = fs::temp_directory_path(error).string();
    path += "/halftone-reduce-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      return ModelError(path, ": cannot be made; set TMPDIR");
    }
    folder_ = path;
    return absl::OkStatus();
  }
  absl::StatusOr<int> ExitCodeWith(const ModelFile& model) const {
    const std::string path = absl::StrCat(folder_, "/", kModelName);
    HT_RETURN_IF_ERROR(WriteFileAtomically(path, PrintModel(*model.model)));
    const std::string command =
        absl::StrReplaceAll(text_, {{kPlace, ShellWord(path)}});
    return runtime::ExitCodeOfWait(
        std::system(absl::StrCat("(", command, "\n) >/dev/null 2>&1").c_str()));
  }

 private:
  std::string text_, folder_;
};

}  // namespace

std::string MessageClass(absl::string_view message) {
  std::string words;
  for (absl::string_view word :
       absl::StrSplit(message, absl::ByAnyChar(" ,;:()\"\n"))) {
    if (IsWord(word)) absl::StrAppend(&words, word, " ");
  }
  return words;
}

absl::StatusOr<ReducedReproducer> ReduceReproducer(const Reproducer& whole) {
  const CompileInputs& inputs = whole.inputs;
  if (!inputs.passes.empty()) {
    return UsageError(
        "the folder is of halftone opt, which runs passes over a "
        "program: expected that of a compile, whose model can be "
        "made smaller");
  }
  HT_ASSIGN_OR_RETURN(const ModelFile source, SourceOf(inputs));
  CompileInputs small = inputs;
  small.model_file = kModelName;
  // As a reader of the folder sees it, with the lines of the new file.
  const auto error_of = [&small](const ModelFile& model) {
    small.model = PrintModel(*model.model);
    return CompileApart(small);
  };
  const absl::Status first = error_of(source);
  const std::string pass = passes::PassAtFault(first);
  const std::string kind = MessageClass(first.message());
  if (ExitCodeOf(first) != ExitCode::kCompilerBug) {
    return UsageError(
        "the model compiles, or ends with another error than a "
        "bug of the compiler: there is nothing to look for");
  }
  HT_ASSIGN_OR_RETURN(
      const Reduced reduced,
      ReduceModel(source, [&](const ModelFile& model) -> absl::StatusOr<bool> {
        const absl::Status error = error_of(model);
        return ExitCodeOf(error) == ExitCode::kCompilerBug &&
               passes::PassAtFault(error) == pass &&
               MessageClass(error.message()) == kind;
      }));
  const absl::Status error = error_of(reduced.model);
  ReducedReproducer result{MakeReproducer(std::move(small), error),
                           reduced.ops_before, reduced.model.model->op_size(),
                           reduced.asked};
  result.reproducer.command = whole.command;
  return result;
}

absl::StatusOr<Reduced> ReduceByCommand(const ModelFile& source,
                                        const std::string& command) {
  if (command.find(kPlace) == std::string::npos) {
    return UsageError("--check: expected ", kPlace,
                      " where the model's path "
                      "goes, found ",
                      command);
  }
  Command check(command);
  HT_RETURN_IF_ERROR(check.MakeFolder());
  HT_ASSIGN_OR_RETURN(const int wanted, check.ExitCodeWith(source));
  if (wanted == 0) {
    return UsageError(
        "--check: the command ends with 0 for the whole model; "
        "expected another exit code: that is what is kept");
  }
  return ReduceModel(
      source, [&](const ModelFile& model) -> absl::StatusOr<bool> {
        HT_ASSIGN_OR_RETURN(const int code, check.ExitCodeWith(model));
        return code == wanted;
      });
}

}  // namespace tools
}  // namespace halftone

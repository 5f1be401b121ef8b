#include "tools/reproducer/reproducer.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/shell_word.h"
#include "graph/base/text.h"
#include "graph/import/neutral.h"
#include "graph/io/compiled_model.h"
#include "graph/strategy/fields.h"
#include "passes/pipeline.h"

namespace halftone {
namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "halftone-bug-";

// What this process was started with.
std::vector<std::string> Command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>()};
  std::vector<std::string> words = absl::StrSplit(all, '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

// A new folder below `parent`; empty: there is none to be had.
std::string NewFolder(const std::string& parent, const std::string& name) {
  std::string path = absl::StrCat(parent, "/", name, "XXXXXX");
  return mkdtemp(path.data()) == nullptr ? "" : path;
}

// Whole or not there: several ranks may meet the same bug at once.
absl::StatusOr<std::string> KeepHere(const Reproducer& reproducer) {
  const CompileInputs& inputs = reproducer.inputs;
  const uint64_t hash = StableHash(
      absl::StrCat(Hex64(StableHash(inputs.model)), inputs.target,
                   StrategyText(inputs.options.strategy),
                   absl::StrJoin(inputs.passes, " "), reproducer.message));
  const std::string name = absl::StrCat(kPrefix, Hex64(hash).substr(0, 8));
  const std::string made = NewFolder(".", absl::StrCat(".", name, "-"));
  if (made.empty()) return ModelError(name, ": cannot be made here");
  absl::Status status = WriteReproducer(made, reproducer);
  if (status.ok() && std::rename(made.c_str(), name.c_str()) == 0) return name;
  std::error_code error;
  fs::remove_all(made, error);
  if (!status.ok()) return status;
  // Of before, or another rank's.
  HT_RETURN_IF_ERROR(ReadReproducer(name).status());
  return name;
}

absl::StatusOr<std::string> Keep(const Reproducer& reproducer) {
  auto here = KeepHere(reproducer);
  if (here.ok()) return here;
  std::error_code error;
  const std::string made =
      NewFolder(fs::temp_directory_path(error).string(), kPrefix);
  if (made.empty()) return here;
  HT_RETURN_IF_ERROR(WriteReproducer(made, reproducer));
  return made;
}

}  // namespace

absl::StatusOr<ModelFile> SourceOf(const CompileInputs& inputs) {
  HT_ASSIGN_OR_RETURN(const FileKind kind,
                      DetectKind(inputs.model, inputs.model_file));
  if (kind == FileKind::kCompiledModel) {
    HT_ASSIGN_OR_RETURN(const CompiledModel model,
                        ParseCompiledModel(inputs.model, inputs.model_file,
                                           /*target=*/""));
    return model.WholeSource();
  }
  HT_ASSIGN_OR_RETURN(ModelFile source,
                      ParseModel(inputs.model, inputs.model_file));
  DropNeutral(&*source.model);
  return source;
}

Reproducer MakeReproducer(CompileInputs inputs, const absl::Status& error) {
  Reproducer made;
  made.inputs = std::move(inputs);
  made.message = std::string(error.message());
  made.pass = passes::PassAtFault(error);
  made.version = kProducer;
  made.build = "compiler " __VERSION__;
  made.command = Command();
  for (const OpLibrary* library : OpLibraries()) {
    made.op_libraries.push_back(*library);
  }
  return made;
}

absl::Status WithReproducer(const absl::Status& error, CompileInputs inputs) {
  const auto folder = Keep(MakeReproducer(std::move(inputs), error));
  const std::string what =
      folder.ok()
          ? absl::StrCat(
                "please report this bug of the compiler with the "
                "folder ",
                *folder, "; again: halftone replay ", ShellWord(*folder))
          : absl::StrCat(
                "please report this bug of the compiler with the "
                "model (no folder for it: ",
                folder.status().message(), ")");
  return MakeError(ExitCodeOf(error),
                   absl::StrCat(error.message(), "; ", what));
}

}  // namespace tools
}  // namespace halftone

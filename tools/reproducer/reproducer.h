// A compile that met a bug of the compiler, in a folder: all that it read, and
// what it said, so that it can be run again elsewhere.
#ifndef HALFTONE_TOOLS_REPRODUCER_REPRODUCER_H_
#define HALFTONE_TOOLS_REPRODUCER_REPRODUCER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/io/model_reader.h"
#include "graph/schema/op_library.h"
#include "passes/compile.h"
#include "passes/options/options.h"

namespace halftone {
namespace tools {

// All that a compile reads. Of `flags` what changes the program counts: not
// dumps, and who plans is not data.
struct CompileInputs {
  std::string model;       // the file's bytes: a model, or a compiled one
  std::string model_file;  // its name, as errors have it
  passes::Options options;
  std::string target;
  passes::CompileFlags flags;
  // Those that `halftone opt` runs, by their names; empty: a whole compile.
  std::vector<std::string> passes;
};
// The model in it, without what changes nothing here (graph/import/neutral.h).
absl::StatusOr<ModelFile> SourceOf(const CompileInputs& inputs);

struct Reproducer {
  CompileInputs inputs;
  std::string message, pass;  // of the error; no pass: outside of all
  std::string version, build;
  std::vector<std::string> command;
  std::vector<OpLibrary> op_libraries;  // that were loaded
};
inline constexpr char kReproducerManifest[] = "reproducer.json";

// With this process's version, command and libraries.
Reproducer MakeReproducer(CompileInputs inputs, const absl::Status& error);

// Into `directory`, which is there. Errors are kModel.
absl::Status WriteReproducer(const std::string& directory,
                             const Reproducer& reproducer);

// Errors: kCheckpoint names the file that is missing, damaged by its checksum
// or not what a reproducer has; kModel an op library that is to be loaded
// first. None is loaded by what a folder says: it may be a stranger's.
absl::StatusOr<Reproducer> ReadReproducer(const std::string& path);

// The error with the name of a new folder in it: halftone-bug-HASH below the
// working directory, or one below TMPDIR where nothing can be written there.
// The same bug of the same model has the same name, and one folder.
absl::Status WithReproducer(const absl::Status& error, CompileInputs inputs);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPRODUCER_REPRODUCER_H_

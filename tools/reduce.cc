// halftone reduce: a failing model with fewer ops.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/disk/directory.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/output_file.h"
#include "graph/io/model_printer.h"
#include "tools/common/command_line.h"
#include "tools/common/json_text.h"
#include "tools/common/model_flags.h"
#include "tools/common/show_answer.h"
#include "tools/reduce/failures.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct ReduceFlags {
  std::string path, check, out;
  std::vector<std::string> op_libraries;
  bool json = false;
};

void ShowReduced(const ReduceFlags& flags, const std::string& out, int before,
                 int ops, int asked) {
  if (flags.json) {
    Show(JsonText({{"schema", 1},
                   {"ops_before", before},
                   {"ops", ops},
                   {"tried", asked},
                   {"out", out}}),
         stdout);
    return;
  }
  ShowAnswer(absl::StrCat("reduced  ", before, " ops to ", ops, ", by ", asked,
                          " models tried: ", out, "\n"),
             /*for_programs=*/false);
}

absl::Status ReduceBug(const ReduceFlags& flags) {
  HT_ASSIGN_OR_RETURN(const Reproducer whole, ReadReproducer(flags.path));
  HT_ASSIGN_OR_RETURN(const ReducedReproducer reduced, ReduceReproducer(whole));
  const std::string out = flags.out.empty() ? flags.path + ".small" : flags.out;
  HT_RETURN_IF_ERROR(Directory::Make(out).status());
  HT_RETURN_IF_ERROR(WriteReproducer(out, reduced.reproducer));
  ShowReduced(flags, out, reduced.ops_before, reduced.ops, reduced.asked);
  return absl::OkStatus();
}

absl::Status ReduceModelFile(const ReduceFlags& flags) {
  CompileInputs inputs;
  HT_ASSIGN_OR_RETURN(inputs.model, ReadFile(flags.path, kMaxModelBytes));
  inputs.model_file = flags.path;
  HT_ASSIGN_OR_RETURN(const ModelFile source, SourceOf(inputs));
  HT_ASSIGN_OR_RETURN(const Reduced reduced,
                      ReduceByCommand(source, flags.check));
  const std::string out =
      flags.out.empty() ? flags.path + ".small.pbtxt" : flags.out;
  HT_RETURN_IF_ERROR(WriteOutput(out, PrintModel(*reduced.model.model)));
  ShowReduced(flags, out, reduced.ops_before, reduced.model.model->op_size(),
              reduced.asked);
  return absl::OkStatus();
}

absl::Status Reduce(const ReduceFlags& flags) {
  HT_RETURN_IF_ERROR(LoadOpLibraries(flags.op_libraries));
  return flags.check.empty() ? ReduceBug(flags) : ReduceModelFile(flags);
}

}  // namespace

void AddReduce(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ReduceFlags>();
  Verb verb = app.AddVerb(
      "reduce", "a failing model with fewer ops",
      "examples:\n"
      "  halftone reduce halftone-bug-1f0c2a9b\n"
      "  halftone reduce big.pbtxt --check 'halftone compile {} --level O2'\n"
      "  halftone reduce big.pbtxt -o small.pbtxt \\\n"
      "      --check '! halftone compile {} 2>&1 | grep -q \"slot Y\"'\n\n"
      "Takes ops out while the model still fails, by delta debugging. Of a\n"
      "folder that an error with exit code 4 named: while the same pass fails\n"
      "with the same kind of message. With --check: while the command's exit\n"
      "code is the one that it has for the whole model. What reads a value of\n"
      "an op that is gone reads that op's input of the same type, or a feed.");
  verb.AddOption("path", &flags->path,
                 "a folder that halftone replay takes; with --check a model,\n"
                 "or a compiled one")
      .Required();
  verb.AddOption("--check", &flags->check,
                 "a command for sh that fails; {} is the model's path");
  verb.AddOption("-o,--out", &flags->out,
                 "where what is left goes; default: the path and .small, of a\n"
                 "model .small.pbtxt")
      .Writes();
  AddOpLibraryFlag(verb, &flags->op_libraries);
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Reduce(*flags); });
}

}  // namespace tools
}  // namespace halftone

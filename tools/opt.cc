// halftone opt: passes over a program, by name.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "graph/text/text.h"
#include "passes/named_passes.h"
#include "tools/common/command_line.h"
#include "tools/common/program_input.h"
#include "tools/common/run_passes.h"
#include "tools/common/show_answer.h"
#include "tools/report/opt_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct OptFlags {
  ModelFlags model;
  std::vector<std::string> passes;
  std::string out;
  bool list = false, json = false;
};

absl::Status RunAndShow(const OptFlags& flags) {
  if (flags.model.path.empty()) {
    return UsageError("opt: expected a program, or --list");
  }
  // What is no name need not be read first.
  for (const std::string& name : flags.passes) {
    HT_RETURN_IF_ERROR(passes::PhaseBefore(name).status());
  }
  HT_ASSIGN_OR_RETURN(ProgramInput input, ReadProgram(flags.model));
  HT_ASSIGN_OR_RETURN(const std::vector<passes::PassRun> runs,
                      RunPasses(flags.passes, flags.model.compile, &input));
  const std::string text = Print(*input.program);
  if (!flags.out.empty()) HT_RETURN_IF_ERROR(WriteOutput(flags.out, text));
  if (flags.json) {
    proto::CompileReport report;
    passes::AddPassRows(runs, report.mutable_pass());
    Show(OptJson(report.pass(), flags.out, text), stdout);
  } else if (flags.out.empty()) {
    Show(text, stdout);
  }
  return absl::OkStatus();
}

absl::Status Opt(const OptFlags& flags) {
  if (!flags.list) return RunAndShow(flags);
  ShowAnswer(flags.json ? PassListJson() : PassListText(), flags.json);
  return absl::OkStatus();
}

}  // namespace

void AddOpt(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<OptFlags>();
  Verb verb = app.AddVerb(
      "opt", "passes over a program, by name",
      "examples:\n"
      "  halftone opt --list\n"
      "  halftone opt models/mlp.pbtxt --level O1 --passes precision\n"
      "  halftone opt dumps/*.master-weights.txt --strategy s.pbtxt \\\n"
      "      --passes choose-layout,split-batch-norm,fuse\n"
      "  halftone inspect mnist.htc --dump |\n"
      "      halftone opt - --passes clean-up.fold-casts --set amp.level=O2\n\n"
      "Reads a program in text form, as --dump-dir and inspect --dump write\n"
      "it, or what a model is compiled from; runs the passes in the order in\n"
      "which they are named; prints what they made of it. For who works on\n"
      "them. It is verified before the first and after each. What passes need\n"
      "besides the program they take from the strategy and the target. A bug\n"
      "of a pass leaves a folder, as with halftone compile.");
  verb.AddOption("program", &flags->model.path,
                 "program (.ht), - for stdin; model, compiled model: the\n"
                 "forward program in it");
  verb.AddOption("--passes", &flags->passes,
                 "passes, groups of them, phases or `all`: a,b,c")
      .WithCommas();
  verb.AddSwitch("--list", &flags->list, "what can be named, in its order");
  AddStrategyFlags(verb, &flags->model);
  verb.AddOption("--fetch", &flags->model.compile.taps,
                 "values that keep-taps keeps")
      .WithCommas();
  verb.AddOption("-o,--out", &flags->out,
                 "where the program goes; default: stdout");
  verb.AddSwitch("--json", &flags->json,
                 "the passes' times as one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Opt(*flags); });
}

}  // namespace tools
}  // namespace halftone

// halftone launch: one process per rank, supervised.
#include <cstdio>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "runtime/gpu/choose_gpus.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/launch/launcher.h"
#include "tools/common/command_line.h"
#include "tools/common/launch_command.h"
#include "tools/common/model_flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct LaunchFlags {
  runtime::LaunchOptions options;
  std::string gpus, tee, ips, master_port, nnodes;
  std::vector<std::string> ignored, op_libraries;
};

// A number, or torchrun's MIN:MAX where both are the same.
absl::Status ParseNodes(const std::string& text, int* nodes) {
  const std::vector<std::string> ends = absl::StrSplit(text, ':');
  if (ends.size() <= 2 && ends.front() == ends.back() &&
      absl::SimpleAtoi(ends.front(), nodes) && *nodes > 0) {
    return absl::OkStatus();
  }
  return UsageError("--nnodes ", text,
                    ": expected a number of machines, which stays the same "
                    "during a run");
}

absl::StatusOr<int> Run(Verb verb, LaunchFlags& flags) {
  runtime::LaunchOptions& options = flags.options;
  if (options.json && !options.explain) {
    return UsageError(
        "launch: --json goes with --explain; for the report of a run, put it "
        "behind run");
  }
  if (!flags.nnodes.empty()) {
    HT_RETURN_IF_ERROR(ParseNodes(flags.nnodes, &options.nnodes));
  }
  if (!flags.gpus.empty()) {
    HT_RETURN_IF_ERROR(ParseNumbers("--gpus", flags.gpus, &options.gpus));
  }
  options.visible_gpus = runtime::CountVisible(runtime::CountGpuNodes(),
                                               runtime::CurrentEnvironment());
  if (flags.tee == "all") {
    options.tee_all = true;
  } else if (!flags.tee.empty()) {
    HT_RETURN_IF_ERROR(ParseNumbers("--tee", flags.tee, &options.tee));
  }
  if (!flags.ips.empty()) options.ips = absl::StrSplit(flags.ips, ',');
  if (!flags.master_port.empty()) {
    absl::StrAppend(&options.master, ":", flags.master_port);
  }
  for (const std::string& flag : flags.ignored) {
    ShowReport(absl::StrCat("launch   ", flag, ": accepted and ignored\n"),
               stderr);
  }
  HT_RETURN_IF_ERROR(TakeLaunchedCommand(verb, &options));
  if (!flags.op_libraries.empty() && !options.own_verb) {
    return UsageError("launch: --op-library goes with run, eval or predict");
  }
  // To all ranks, behind the words "halftone run".
  for (const std::string& path : flags.op_libraries) {
    options.command.insert(options.command.begin() + 2, {"--op-library", path});
  }
  return runtime::Launch(options);
}

void AddFlags(Verb verb, LaunchFlags* flags) {
  runtime::LaunchOptions* options = &flags->options;
  verb.AddOption(WithUnderscores("--ranks,--nproc-per-node"), &options->ranks,
                 "ranks on this machine: N | auto | gpu | cpu");
  verb.AddOption("--gpus,--devices", &flags->gpus, "physical ids: 0,1,3");
  verb.AddOption("--nnodes", &flags->nnodes, "machines");
  verb.AddOption(WithUnderscores("--node-rank,--rank"), &options->node_rank,
                 "which of them this is");
  verb.AddOption(WithUnderscores("--master,--rdzv-endpoint,--master-addr"),
                 &options->master, "HOST:PORT of node 0");
  verb.AddOption(WithUnderscores("--master-port"), &flags->master_port,
                 "its port, where --master-addr has none");
  verb.AddOption("--ips", &flags->ips, "addresses of all machines instead");
  verb.AddOption(WithUnderscores("--token-file"), &options->token_file,
                 "the run's secret: a file of mode 0600, - for stdin");
  verb.AddOption(WithUnderscores("--log-dir"), &options->log_dir,
                 "default: <out>/logs of the command");
  verb.AddOption("--tee,-t", &flags->tee, "ranks to show as well: 0,3 | all");
  verb.AddOption(WithUnderscores("--max-restarts,--max-restart"),
                 &options->max_restarts,
                 "restart all ranks from the last good checkpoint")
      .InRange(0, 1000000);
  verb.AddSwitch(
      "--explain", &options->explain,
      "print where rank, world and address come from; start nothing");
  verb.AddSwitch("--json", &options->json, "with --explain: one JSON object");
  AddOpLibraryFlag(verb, &flags->op_libraries);
  AddIgnoredLaunchFlags(verb, &flags->ignored);
}

}  // namespace

void AddLaunch(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<LaunchFlags>();
  Verb verb = app.AddVerb(
      "launch", "one process per rank",
      "examples:\n"
      "  halftone launch --ranks 2 run mnist.htc --data idx:models/digits\n"
      "  halftone launch --nnodes 2 --node-rank 0 --master host0:29500 \\\n"
      "      --ranks 4 run mnist.htc --data idx:/data --out runs/a\n"
      "  halftone launch --ranks 2 -- python train.py --lr 0.1\n\n"
      "Starts the command on every rank of this machine and looks after them. "
      "A command\nbehind -- gets the variables of torchrun and "
      "paddle.distributed.launch.");
  AddFlags(verb, flags.get());
  verb.TakeCommand();
  verb.SetRun([verb, flags, outcome] {
    const absl::StatusOr<int> code = Run(verb, *flags);
    outcome->status = code.status();
    if (code.ok()) outcome->exit_code = *code;
  });
}

}  // namespace tools
}  // namespace halftone

// halftone launch: one process per rank, supervised.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "runtime/gpu/choose_gpus.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/launch/launcher.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/trainer.h"
#include "tools/common/flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct LaunchFlags {
  runtime::LaunchOptions options;
  std::string gpus, tee, ips, master_port;
  std::vector<std::string> ignored;
};

// The verbs that are ranks: `launch run ...` is short for `launch -- halftone
// run ...` with this very binary.
absl::Status CompleteCommand(const CLI::App& verb,
                             runtime::LaunchOptions* options) {
  std::vector<std::string>* command = &options->command;
  if (command->empty()) {
    return UsageError(
        "launch: no command; e.g. halftone launch --ranks 2 run mnist.htc "
        "--data idx:models/digits");
  }
  if (command->front()[0] == '-') {
    return UnknownFlagError(verb, command->front());
  }
  if (command->front() != "run" && command->front() != "eval") {
    return absl::OkStatus();
  }
  options->may_use_out = [](const std::string& out) {
    return runtime::RunDirectory(out).RefuseIfUsed();
  };
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof(self));
  if (size < 0 || size == sizeof(self)) {
    return UsageError("launch: cannot tell where this binary is");
  }
  command->insert(command->begin(), std::string(self, size));
  options->readers = runtime::TrainConfig().readers;
  return absl::OkStatus();
}

absl::StatusOr<int> Run(const CLI::App& verb, LaunchFlags& flags) {
  runtime::LaunchOptions& options = flags.options;
  if (options.json && !options.explain) {
    return UsageError(
        "launch: --json goes with --explain; for the report of a run, put it "
        "behind run");
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
  HT_RETURN_IF_ERROR(CompleteCommand(verb, &options));
  return runtime::Launch(options);
}

void AddFlags(CLI::App& verb, LaunchFlags* flags) {
  runtime::LaunchOptions* options = &flags->options;
  verb.add_option(WithUnderscores("--ranks,--nproc-per-node"), options->ranks,
                  "ranks on this machine: N | auto | gpu | cpu");
  verb.add_option("--gpus,--devices", flags->gpus, "physical ids: 0,1,3");
  verb.add_option("--nnodes", options->nnodes, "machines");
  verb.add_option(WithUnderscores("--node-rank,--rank"), options->node_rank,
                  "which of them this is");
  verb.add_option(WithUnderscores("--master,--rdzv-endpoint,--master-addr"),
                  options->master, "HOST:PORT of node 0");
  verb.add_option(WithUnderscores("--master-port"), flags->master_port,
                  "its port, where --master-addr has none");
  verb.add_option("--ips", flags->ips, "addresses of all machines instead");
  verb.add_option(WithUnderscores("--token-file"), options->token_file,
                  "the run's secret, a file of mode 0600");
  verb.add_option(WithUnderscores("--log-dir"), options->log_dir,
                  "default: <out>/logs of the command");
  verb.add_option("--tee,-t", flags->tee, "ranks to show as well: 0,3 | all");
  verb.add_option(WithUnderscores("--max-restarts,--max-restart"),
                  options->max_restarts,
                  "restart all ranks from the last good checkpoint");
  verb.add_flag("--explain", options->explain,
                "print where rank, world and address come from; start nothing");
  verb.add_flag("--json", options->json, "with --explain: one JSON object");
  for (const char* name : {"--rdzv-backend", "--rdzv-id", "--run-mode"}) {
    verb.add_option_function<std::string>(
        WithUnderscores(name),
        [flags, name](const std::string&) { flags->ignored.push_back(name); },
        "accepted for torchrun and fleetrun command lines, ignored");
  }
  verb.add_flag_callback(
      "--standalone", [flags] { flags->ignored.push_back("--standalone"); },
      "likewise");
}

}  // namespace

void AddLaunch(CLI::App& app, Outcome* outcome) {
  auto flags = std::make_shared<LaunchFlags>();
  CLI::App* verb = AddVerb(
      app, "launch", "one process per rank",
      "examples:\n"
      "  halftone launch --ranks 2 run mnist.htc --data idx:models/digits\n"
      "  halftone launch --nnodes 2 --node-rank 0 --master host0:29500 \\\n"
      "      --ranks 4 run mnist.htc --data idx:/data --out runs/a\n"
      "  halftone launch --ranks 2 -- ./any command\n\n"
      "Starts the command on every rank of this machine and looks after them.");
  AddFlags(*verb, flags.get());
  verb->prefix_command();
  verb->callback([verb, flags, outcome] {
    flags->options.command = verb->remaining();
    const absl::StatusOr<int> code = Run(*verb, *flags);
    outcome->status = code.status();
    if (code.ok()) outcome->exit_code = *code;
  });
}

}  // namespace tools
}  // namespace halftone

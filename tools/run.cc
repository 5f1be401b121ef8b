// halftone run: trains a model on this process's ranks.
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/rendezvous/restart_cause.h"
#include "runtime/tune/tune.h"
#include "tools/common/command_line.h"
#include "tools/common/keep_fetched.h"
#include "tools/common/model_flags.h"
#include "tools/common/model_path.h"
#include "tools/common/run_flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct RunFlags {
  ModelFlags model;
  RankFlags ranks;
  runtime::TrainConfig config;
  std::string checkpoint_every = "1e", eval_every = "1e", compare_every = "1e";
  std::string profile;  // "true": no file
};

absl::Status Run(RunFlags& flags, int* signal) {
  runtime::TrainConfig& config = flags.config;
  if ((config.resume || config.capsules > 0) && config.out.empty()) {
    return UsageError(config.resume ? "--resume" : "--capsule",
                      ": name the run directory with --out");
  }
  config.profile = !flags.profile.empty();
  if (flags.profile != "true") config.trace = flags.profile;
  HT_ASSIGN_OR_RETURN(
      config.checkpoint_every,
      runtime::ParseCadence("--checkpoint-every", flags.checkpoint_every));
  HT_ASSIGN_OR_RETURN(config.eval_every,
                      runtime::ParseCadence("--eval-every", flags.eval_every));
  HT_ASSIGN_OR_RETURN(
      config.compare_every,
      runtime::ParseCadence("--compare-every", flags.compare_every));
  if (config.compare_every.unit == runtime::Cadence::Unit::kMinutes) {
    return UsageError("--compare-every \"", flags.compare_every,
                      "\": expected steps (500), epochs (1e) or never, which "
                      "all ranks come to together");
  }
  if (flags.model.target.empty()) {
    HT_ASSIGN_OR_RETURN(flags.model.target, TargetOfRun(flags.ranks));
  }
  flags.model.threads = ThreadsHere(flags.ranks);
  HT_ASSIGN_OR_RETURN(CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/false));
  HT_RETURN_IF_ERROR(KeepFetched(&model, flags.model.threads, &config));
  HT_ASSIGN_OR_RETURN(const FileKind kind, KindOf(flags.model));
  if (kind == FileKind::kCompiledModel) config.compiled_path = flags.model.path;
  HT_RETURN_IF_ERROR(FillConfig(model, &config));
  HT_ASSIGN_OR_RETURN(const ModelPath path, FindModel(flags.model.path));
  HT_ASSIGN_OR_RETURN(config.tuning, runtime::ReadTuningBeside(path.file));
  const auto restart = runtime::FindRestartCause(runtime::CurrentEnvironment());
  if (restart.has_value()) {
    config.restart = {0, restart->attempt, restart->rank, restart->step,
                      restart->cause};
  }
  HT_ASSIGN_OR_RETURN(const LocalRanks ranks,
                      MakeRanks(flags.ranks, model.target));
  NoteThreads(model, flags.ranks, ranks, &config);
  config.on_activity = [&ranks](int64_t step, const char* activity) {
    ranks.reporter->SetStep(step);
    ranks.reporter->SetActivity(activity);
  };
  config.on_checkpoint = [&ranks](int64_t step) {
    ranks.reporter->SetCheckpoint(step);
  };
  return runtime::Train(*model.program, *ranks.kernels, config, ranks.resources,
                        signal);
}

void AddReportFlags(Verb verb, RunFlags* flags) {
  runtime::TrainConfig* config = &flags->config;
  verb.AddOption("--out", &config->out,
                 "run directory: model, metrics, checkpoints, summary");
  verb.AddSwitch("--resume", &config->resume,
                 "go on from the last good checkpoint of --out");
  verb.AddOption(
      "--init", &config->init,
      "parameters by name: a run directory, or a .safetensors file,\n"
      "which may hold a part of them (fine-tuning)");
  verb.AddSwitch("--ignore-mismatched", &config->ignore_mismatched,
                 "of --init: parameters of other shapes stay as initialised");
  verb.AddSwitch("!--no-shuffle", &config->shuffle, "keep the data's order");
  verb.AddOption("--log-every", &config->log_every, "steps (default 10)")
      .InRange(1, 1000000000);
  verb.AddOption("--checkpoint-every", &flags->checkpoint_every,
                 "500 (steps) | 10m | 1e (epochs, default) | never");
  verb.AddOption("--eval-every", &flags->eval_every, "likewise");
  verb.AddOption("--compare-every", &flags->compare_every,
                 "likewise, but for minutes: whether all ranks hold the same\n"
                 "state, as before each checkpoint; the first rank and cell\n"
                 "that differ end the run");
  verb.AddOption("--keep", &config->keep_checkpoints,
                 "newest checkpoints that stay, beside the best (default 3)")
      .InRange(1, 1000000);
  verb.AddOption("--fetch", &config->fetches,
                 "VALUE[:norm|hist|npz|exponents]: a name or a glob, of which\n"
                 "parameters' gradients come first; exponents: what f16 keeps");
  verb.AddOption("--fetch-every", &config->fetch_every,
                 "steps; default: as --log-every")
      .InRange(1, 1000000000);
  verb.AddOption("--capsule", &config->capsules,
                 "rejected steps that are kept in --out, from the first on,\n"
                 "for halftone replay (default 0); if it diverges, the last")
      .InRange(0, 1000);
  verb.AddSwitch("--profile", &flags->profile,
                 "where the time of a step goes, by class; =FILE also writes\n"
                 "the latest steps as a trace for ui.perfetto.dev")
      .Writes();
  verb.AddSwitch("--json", &config->json,
                 "the report at the end as one JSON object (summary.json)");
}

}  // namespace

void AddRun(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<RunFlags>();
  Verb verb = app.AddVerb(
      "run", "train on this process's ranks",
      "examples:\n"
      "  halftone run mnist.htc --data idx:models/digits --out runs/mnist\n"
      "  halftone run mnist.htc --data idx:models/digits --ranks 2 --epochs 1\n"
      "  halftone run model.pbtxt --strategy s.pbtxt --data synthetic\n\n"
      "Trains a model on one rank, on --ranks threads, or as the rank that a\n"
      "launcher (halftone launch, torchrun, mpirun ...) made this process.");
  AddModelFlags(verb, &flags->model);
  AddDataFlags(verb, &flags->config);
  AddReportFlags(verb, flags.get());
  AddRankFlags(verb, &flags->ranks);
  verb.SetRun([flags, outcome] {
    int signal = 0;
    outcome->status = Run(*flags, &signal);
    if (signal != 0) outcome->exit_code = 128 + signal;
  });
}

}  // namespace tools
}  // namespace halftone

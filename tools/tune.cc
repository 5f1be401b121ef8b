// halftone tune: times the kernels of a model's ops on this machine.
#include "runtime/tune/tune.h"

#include <memory>

#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "runtime/log/shown_activity.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/model_path.h"
#include "tools/common/run_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/tune_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct TuneFlags {
  ModelFlags model;
  RankFlags device;
  runtime::TuneOptions options;
  int64_t batch = 0;
  std::string out;
  bool json = false;
};

absl::Status Tune(TuneFlags& flags) {
  if (flags.model.target.empty()) {
    HT_ASSIGN_OR_RETURN(flags.model.target, TargetOfRun(flags.device));
  }
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/false));
  HT_ASSIGN_OR_RETURN(
      const std::vector<runtime::TuneBinding> bindings,
      TuneBindings(model, flags.batch, flags.options.world_size));
  // As many threads as a rank of that split has.
  flags.device.ranks = 1;
  flags.device.threads = ThreadsPerRank(
      flags.device.threads, static_cast<int>(flags.options.world_size));
  HT_ASSIGN_OR_RETURN(const LocalRanks ranks,
                      MakeRanks(flags.device, model.target));
  auto shown = std::make_unique<runtime::ShownActivity>("tune");
  flags.options.on_progress = [&shown](int64_t done, int64_t of) {
    if ((*shown)->now().of != of) (*shown)->Begin("tune", 0, of);
    (*shown)->Did(done);
  };
  HT_ASSIGN_OR_RETURN(const runtime::Tuned tuned,
                      runtime::Tune(*model.program, *ranks.kernels, bindings,
                                    flags.options, *ranks.devices[0]));
  shown.reset();
  HT_ASSIGN_OR_RETURN(const ModelPath model_path, FindModel(flags.model.path));
  const std::string path =
      flags.out.empty() ? runtime::TuningPathOf(model_path.file) : flags.out;
  HT_RETURN_IF_ERROR(WriteOutput(path, tuned.table.Serialize()));
  const std::string text = flags.json
                               ? TuneJson(tuned, flags.options.runs, path)
                               : TuneText(tuned, flags.options.runs, path);
  ShowAnswer(text, flags.json);
  return absl::OkStatus();
}

}  // namespace

void AddTune(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<TuneFlags>();
  Verb verb = app.AddVerb(
      "tune", "choose the fastest kernels by timing them here",
      "examples:\n"
      "  halftone tune mnist.htc\n"
      "  halftone tune mnist.htc --ranks 4 --batch 256\n"
      "  halftone tune resnet50.htc --gpus 0\n\n"
      "Writes mnist.tuning.json beside mnist.htc; a run of mnist.htc\n"
      "that begins on the same kind of device takes its kernels from\n"
      "there, and keeps them when it is resumed.");
  AddModelFlags(verb, &flags->model);
  verb.AddOption("--ranks", &flags->options.world_size,
                 "that share the batch and this machine's cores; default 1")
      .InRange(1, 1 << 20);
  verb.AddOption("--batch", &flags->batch,
                 "samples of all ranks; default: the strategy's")
      .InRange(1, 1 << 30);
  verb.AddOption("--gpus", &flags->device.gpus, "the GPU to time on");
  verb.AddOption("--threads", &flags->device.threads,
                 "compute threads of a rank; default: OMP_NUM_THREADS, else "
                 "cores / ranks")
      .InRange(1, 1024);
  verb.AddOption("--runs", &flags->options.runs, "of each kernel; default 7")
      .InRange(1, 1000);
  verb.AddSwitch("!--no-deterministic", &flags->options.deterministic,
                 "try kernels whose bits vary from run to run, too");
  verb.AddOption("-o,--out", &flags->out, "another file for the table")
      .Writes();
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Tune(*flags); });
}

}  // namespace tools
}  // namespace halftone

// halftone plan: memory, buckets and predicted time of a split over ranks.
#include <memory>

#include "graph/base/error.h"
#include "graph/targets/links.h"
#include "runtime/tune/tune.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/model_path.h"
#include "tools/common/run_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/plan_report.h"
#include "tools/report/roofline_report.h"
#include "tools/report/timeline_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct PlanFlags {
  ModelFlags model;
  PlanQuestion question;
  std::string memory;
  bool max_batch = false, steps = false, roofline = false, json = false;
  bool timeline = false;
  int threads = 0;
  TimelineQuestion along;
  std::string trace;
};

bool IsTimed(const PlanFlags& flags) {
  return flags.roofline || flags.timeline;
}

absl::StatusOr<std::string> Answer(PlanFlags& flags,
                                   const CompiledModel& model) {
  const PlanQuestion& question = flags.question;
  if (flags.max_batch) {
    return MaxBatchText(model, question, flags.memory, flags.json);
  }
  if (flags.steps) return StepsText(model, question, flags.json);
  if (!IsTimed(flags)) return PlanText(model, question, flags.json);
  HT_ASSIGN_OR_RETURN(const ModelPath path, FindModel(flags.model.path));
  HT_ASSIGN_OR_RETURN(const runtime::TuningTable tuning,
                      runtime::ReadTuningBeside(path.file));
  if (flags.roofline) return RooflineText(model, question, tuning, flags.json);
  flags.along.plan = question;
  if (!flags.trace.empty()) {
    HT_RETURN_IF_ERROR(
        WriteTimelineTrace(model, flags.along, tuning, flags.trace));
  }
  return TimelineText(model, flags.along, tuning, flags.json);
}

absl::Status PrintPlan(PlanFlags& flags) {
  flags.model.threads = ThreadsPerRank(flags.threads, flags.question.ranks);
  // What is predicted of time is of ranks with one thread.
  flags.question.threads = IsTimed(flags) ? 1 : flags.model.threads;
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  HT_ASSIGN_OR_RETURN(const std::string text, Answer(flags, model));
  ShowAnswer(text, flags.json);
  return absl::OkStatus();
}

void AddTimelineFlags(Verb verb, PlanFlags* flags, Flag timeline) {
  TimelineQuestion* along = &flags->along;
  verb.AddOption("--ranks-per-node", &along->ranks_per_node,
                 "of the timeline; default 8")
      .InRange(1, 1 << 20)
      .Needs(timeline);
  verb.AddOption("--link", &along->link,
                 "between ranks of a machine:\n" +
                     LinkNames(/*networks=*/false) +
                     ",\nor a file of tests/benchmarks/link_benchmark;\n"
                     "default: the target's")
      .Needs(timeline);
  verb.AddOption("--between", &along->between,
                 "between machines:\n" + LinkNames(/*networks=*/true) +
                     ",\nseveral as 8xhdr; default 100gbe")
      .Needs(timeline);
  verb.AddOption("--cores-per-rank", &along->cores_per_rank,
                 "of CPU ranks with one thread each; below 1 they share cores\n"
                 "and compute that much longer; default 1")
      .Needs(timeline);
  verb.AddOption("--profile", &along->profile,
                 "what ops take: a trace that run --profile=FILE wrote, of\n"
                 "one rank with as many samples; default: as --roofline\n"
                 "predicts")
      .Needs(timeline);
  verb.AddSwitch("--best-buckets", &along->best_buckets,
                 "the sizes of buckets with which the step is shortest")
      .Needs(timeline);
  verb.AddOption("--trace", &flags->trace,
                 "writes the step for ui.perfetto.dev")
      .Writes()
      .Needs(timeline);
}

}  // namespace

void AddPlan(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<PlanFlags>();
  Verb verb =
      app.AddVerb("plan", "memory, all-reduce buckets, predicted time",
                  "examples:\n"
                  "  halftone plan mnist.htc --ranks 4 --batch 256\n"
                  "  halftone plan mnist.htc --max-batch --memory 8GiB\n"
                  "  halftone plan mnist.htc --steps\n"
                  "  halftone plan mnist.htc --roofline\n"
                  "  halftone plan mnist.htc --timeline --ranks 64 "
                  "--between 8xhdr\n\n"
                  "What each rank needs, before anything runs.");
  AddModelFlags(verb, &flags->model);
  verb.AddOption("--ranks", &flags->question.ranks, "default 1")
      .InRange(1, 1 << 20);
  Flag threads = AddThreadsFlag(verb, &flags->threads);
  Flag batch = verb.AddOption("--batch", &flags->question.batch,
                              "samples of all ranks; default: the strategy's")
                   .InRange(1, 1 << 30);
  Flag entry = verb.AddOption(
      "--entry", &flags->question.entry,
      "of the model: accumulate, average, eval ...; default train");
  Flag steps =
      verb.AddSwitch("--steps", &flags->steps, "every step of the plan");
  Flag max_batch = verb.AddSwitch("--max-batch", &flags->max_batch,
                                  "the largest batch that fits --memory");
  Flag roofline = verb.AddSwitch(
      "--roofline", &flags->roofline,
      "the time of a step, predicted from what each op must compute and\n"
      "move and the target's rates (a CPU's: as halftone tune measured)");
  Flag timeline = verb.AddSwitch(
      "--timeline", &flags->timeline,
      "a simulated step: what of each bucket's all-reduce is exposed, and\n"
      "what a step takes on 1 to 1,024 ranks");
  timeline.Excludes(steps).Excludes(max_batch).Excludes(roofline);
  AddTimelineFlags(verb, flags.get(), timeline);
  max_batch.Excludes(batch).Excludes(entry).Excludes(steps).Excludes(roofline);
  roofline.Excludes(steps);
  threads.Excludes(roofline).Excludes(timeline);
  verb.AddOption("--memory", &flags->memory,
                 "of one rank (8GiB); default: what this machine has")
      .Needs(max_batch);
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = PrintPlan(*flags); });
}

}  // namespace tools
}  // namespace halftone

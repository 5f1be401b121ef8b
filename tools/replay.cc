// halftone replay: a rejected step again, from its capsule; a compile that met
// a bug of the compiler, from its reproducer.
#include "runtime/compare/replay.h"

#include <memory>
#include <string>
#include <vector>

#include "graph/base/disk/directory.h"
#include "graph/base/error.h"
#include "graph/base/system/system_error.h"
#include "graph/io/compiled_model.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/replay_compile.h"
#include "tools/common/run_flags.h"
#include "tools/common/show_answer.h"
#include "tools/compare/replay_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct ReplayFlags {
  std::string path;
  RankFlags ranks;
  std::vector<std::string> op_libraries;
  bool json = false;
};

absl::Status ReplayStep(ReplayFlags& flags) {
  HT_ASSIGN_OR_RETURN(const runtime::Capsule capsule,
                      runtime::ReadCapsule(flags.path));
  HT_ASSIGN_OR_RETURN(
      const CompiledModel model,
      ParseCompiledModel(capsule.model, flags.path + "/model.htc",
                         /*target=*/""));
  // As many ranks as there were, with as many threads each: the same bits.
  RankFlags& ranks = flags.ranks;
  if (ranks.gpus.empty()) {
    ranks.ranks = static_cast<int>(capsule.facts.world_size);
  }
  if (ranks.threads == 0) {
    ranks.threads = static_cast<int>(capsule.facts.threads);
  }
  HT_ASSIGN_OR_RETURN(const LocalRanks local, MakeRanks(ranks, model.target));
  HT_ASSIGN_OR_RETURN(const runtime::Replayed replayed,
                      runtime::Replay(capsule, *model.program, *local.kernels,
                                      local.resources));
  runtime::TrainConfig config;
  HT_RETURN_IF_ERROR(FillConfig(model, &config));
  const ReplayFacts facts = {flags.path, &capsule.facts, &model, &config,
                             &replayed};
  ShowAnswer(flags.json ? ReplayJson(facts) : ReplayText(facts), flags.json);
  return absl::OkStatus();
}

absl::Status ReplayBug(const ReplayFlags& flags) {
  HT_RETURN_IF_ERROR(LoadOpLibraries(flags.op_libraries));
  HT_ASSIGN_OR_RETURN(const Reproducer reproducer, ReadReproducer(flags.path));
  HT_RETURN_IF_ERROR(CompileAgain(reproducer));
  ShowAnswer(flags.json ? FixedJson(reproducer) : FixedText(reproducer),
             flags.json);
  return absl::OkStatus();
}

// Which of both the folder is says its manifest.
absl::Status Replay(ReplayFlags& flags) {
  const auto folder = Directory::Open(flags.path);
  if (!folder.ok()) return Reclassified(folder.status(), ExitCode::kCheckpoint);
  const auto has = [&folder](const char* name) {
    return folder->KindOf(name) != Directory::Kind::kNothing;
  };
  if (has(kReproducerManifest)) return ReplayBug(flags);
  if (has(runtime::kCapsuleManifest)) return ReplayStep(flags);
  return CheckpointError(flags.path, ": expected ", runtime::kCapsuleManifest,
                         " (of a rejected step) or ", kReproducerManifest,
                         " (of a bug of the compiler), found neither");
}

}  // namespace

void AddReplay(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ReplayFlags>();
  Verb verb = app.AddVerb(
      "replay", "a rejected step, or a bug of the compiler, again",
      "examples:\n"
      "  halftone replay runs/mnist/capsules/step-70\n"
      "  halftone replay runs/mnist/capsules/step-70 --json\n"
      "  halftone replay halftone-bug-1f0c2a9b\n\n"
      "Runs the step on as many ranks as there were, as threads of this\n"
      "process, names the first op whose result is not finite, and shows the\n"
      "ranges of what it read and made, and what would have helped. Capsules\n"
      "are kept by halftone run --capsule N, and where a run diverges.\n"
      "Of a compile that ended with exit code 4: compiles again, and ends "
      "with\n"
      "the same message and code while the bug is there, else with 0.");
  verb.AddOption("folder", &flags->path,
                 "RUN/capsules/step-N, or what an error with exit code 4 named")
      .Required();
  AddOpLibraryFlag(verb, &flags->op_libraries);
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.AddOption("--gpus", &flags->ranks.gpus,
                 "of a model for GPUs: one for each rank (0,1)");
  verb.SetRun([flags, outcome] { outcome->status = Replay(*flags); });
}

}  // namespace tools
}  // namespace halftone

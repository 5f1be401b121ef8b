// halftone data: what training data holds, and how fast it is read.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/data/data_format.h"
#include "runtime/log/shown_activity.h"
#include "runtime/train/open_run_data.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/planned_peak.h"
#include "tools/common/run_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/data_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct DataFlags {
  std::string source;
  ModelFlags model;
  runtime::TrainConfig config;
  double seconds = 3;
  bool json = false;
};

void Print(const DataFlags& flags, const std::string& text) {
  ShowAnswer(text, flags.json);
}

absl::Status Verify(const DataFlags& flags, Outcome* outcome) {
  std::string place;
  HT_ASSIGN_OR_RETURN(const runtime::DataFormat* const format,
                      runtime::FindDataFormat(flags.source, &place));
  if (format->look_over != nullptr) {
    HT_ASSIGN_OR_RETURN(const std::vector<runtime::DataFacts> facts,
                        format->look_over(place, flags.config.max_unpack));
    Print(flags, flags.json ? FactsJson(flags.source, facts, format->facts_in)
                            : FactsText(flags.source, facts));
    return absl::OkStatus();
  }
  if (format->open_images == nullptr) {
    return UsageError("data verify ", flags.source, ": ", format->kind,
                      " data is made, not read: there is nothing to verify");
  }
  HT_ASSIGN_OR_RETURN(const runtime::ImageSplits splits,
                      format->open_images(place, {}));
  std::vector<ScannedSplit> scanned;
  for (const auto& [name, source] : {std::pair("train", splits.train.get()),
                                     std::pair("val", splits.test.get())}) {
    if (source == nullptr) continue;
    runtime::ShownActivity shown("verify", 0, source->size());
    HT_ASSIGN_OR_RETURN(
        runtime::ImageScan scan,
        runtime::ScanImages(
            *source, flags.config.readers, flags.config.max_unpack, 0, 1,
            [&](int64_t done) { shown->Did(done); },
            /*to_the_end=*/true));
    scanned.push_back({name, std::move(scan)});
    if (!scanned.back().scan.broken.empty()) {
      outcome->exit_code = static_cast<int>(ExitCode::kDiffer);
    }
  }
  Print(flags, flags.json ? ScanJson(flags.source, scanned, splits.classes)
                          : ScanText(flags.source, scanned, splits.classes));
  return absl::OkStatus();
}

absl::Status Bench(DataFlags& flags) {
  if (!(flags.seconds > 0 && flags.seconds <= 3600)) {
    return UsageError("--seconds ", flags.seconds,
                      ": expected more than 0, up to 3600");
  }
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  HT_RETURN_IF_ERROR(FillConfig(model, &flags.config));
  flags.config.data = flags.source;
  HT_ASSIGN_OR_RETURN(const runtime::RunData data,
                      runtime::OpenRunData(*model.program, flags.config,
                                           /*trained_on=*/true));
  runtime::SamplerOptions sampler;
  sampler.size = data.train->size();
  const int64_t batch = BatchOf(flags.config.strategy, /*ranks=*/1);
  sampler.batch = std::min<int64_t>(batch > 0 ? batch : 64, sampler.size);
  sampler.seed = flags.config.strategy.train().seed();
  std::vector<ReadSpeed> speeds;
  for (int workers = 1;; workers *= 2) {
    workers = std::min(workers, flags.config.readers);
    HT_ASSIGN_OR_RETURN(speeds.emplace_back(),
                        MeasureReading(*data.train, data.specs, sampler,
                                       workers, flags.seconds));
    if (workers == flags.config.readers) break;
  }
  const std::string what =
      absl::StrCat(flags.source, ": ", data.train->Description());
  Print(flags, flags.json ? SpeedJson(what, speeds) : SpeedText(what, speeds));
  return absl::OkStatus();
}

}  // namespace

void AddData(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<DataFlags>();
  Verb verb = app.AddVerb("data", "look training data over",
                          "examples:\n"
                          "  halftone data verify imagefolder:photos\n"
                          "  halftone data bench imagefolder:photos "
                          "resnet18.pbtxt --workers 2\n");
  verb.RequireVerb();
  const auto add_shared = [flags](Verb sub) {
    sub.AddOption("source", &flags->source, "one of " + runtime::DataUsage())
        .Required();
    sub.AddOption("--workers", &flags->config.readers, "reader threads")
        .InRange(1, 64);
    AddMaxUnpackFlag(sub, &flags->config);
    sub.AddSwitch("--json", &flags->json, "one JSON object");
  };
  Verb verify = verb.AddVerb(
      "verify", "read all of it, decode every picture",
      "examples:\n"
      "  halftone data verify imagefolder:photos\n"
      "  halftone data verify 'tar:shards/{000..031}.tar' --json\n"
      "  halftone data verify tokens:train.bin\n\n"
      "Pictures of each class, their sizes, their channels' means, and those\n"
      "that are broken, by name: exit 3 if there are any. Of tokens how many "
      "there\nare and the largest, of arrays what they are.");
  add_shared(verify);
  verify.SetRun(
      [flags, outcome] { outcome->status = Verify(*flags, outcome); });
  Verb bench = verb.AddVerb(
      "bench", "how fast samples are read",
      "examples:\n"
      "  halftone data bench imagefolder:photos resnet18.pbtxt \\\n"
      "      --strategy models/resnet18_o1.pbtxt --workers 2\n"
      "  halftone data bench tokens:train.bin gpt2.htc --seconds 10\n\n"
      "Reads what the model is fed in training, with the strategy's changes, "
      "by\n1, 2, 4 ... up to --workers threads, and trains nothing.");
  add_shared(bench);
  AddModelFlags(bench, &flags->model).Required();
  bench.AddOption("--feed", &flags->config.feed_map,
                  "image=x: the data's name of a feed, and the model's");
  bench.AddOption("--seconds", &flags->seconds, "of each measurement");
  bench.SetRun([flags, outcome] { outcome->status = Bench(*flags); });
}

}  // namespace tools
}  // namespace halftone

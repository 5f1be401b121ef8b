#include "passes/pipeline.h"

#include <algorithm>
#include <optional>
#include <regex>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/text.h"
#include "graph/base/time/monotonic_time.h"
#include "graph/text/text.h"

namespace halftone {
namespace passes {
namespace {

// libstdc++ compiles and matches by recursion, as deep as the pattern has
// states. These bounds keep that small, and __polynomial is its engine that
// never tries a way twice.
constexpr size_t kLongestPattern = 200;

constexpr char kSourceDump[] = "source";

absl::StatusOr<std::regex> MakeRegex(const std::string& pattern) {
  if (pattern.size() > kLongestPattern) {
    return UsageError("--dump-after: a pattern of ", pattern.size(),
                      " characters; at most ", kLongestPattern);
  }
  if (pattern.find('{') != std::string::npos) {
    return UsageError("--dump-after ", pattern,
                      ": repeats are ? * +, not counted by { }");
  }
  try {
    return std::regex(pattern, std::regex_constants::ECMAScript |
                                   std::regex_constants::__polynomial);
  } catch (const std::regex_error& error) {
    return UsageError("--dump-after ", pattern,
                      ": not a regular expression: ", error.what());
  }
}

// Writes the program as it is now if `name` matches.
class Dumper {
 public:
  // `names` can be dumped after.
  static absl::StatusOr<Dumper> Make(const PassPipeline::Settings& settings,
                                     const std::vector<std::string>& names) {
    Dumper dumper;
    dumper.dir_ = settings.dump_dir;
    if (dumper.dir_.empty()) return dumper;
    const std::string& pattern = settings.dump_after;
    if (!pattern.empty()) {
      HT_ASSIGN_OR_RETURN(dumper.matches_, MakeRegex(pattern));
      const bool any = std::any_of(
          names.begin(), names.end(),
          [&](const std::string& name) { return dumper.Matches(name); });
      if (!any) {
        return UsageError("--dump-after ", pattern, ": matches no pass",
                          NearestHint(pattern, names),
                          " (all: ", absl::StrJoin(names, " "), ")");
      }
    }
    HT_RETURN_IF_ERROR(MakeDirectories(dumper.dir_));
    return dumper;
  }

  absl::Status Dump(size_t number, absl::string_view name,
                    const Program& program) const {
    if (dir_.empty() || !Matches(std::string(name))) return absl::OkStatus();
    return WriteFileAtomically(
        absl::StrCat(dir_, "/", absl::StrFormat("%03d.", number), name, ".txt"),
        Print(program));
  }

 private:
  bool Matches(const std::string& name) const {
    return !matches_.has_value() || std::regex_match(name, *matches_);
  }

  std::string dir_;
  std::optional<std::regex> matches_;  // none: all
};

constexpr char kPassPayload[] = "halftone/pass";

// The pass that runs on this thread; null: none.
thread_local const Pass* running = nullptr;

class Running {
 public:
  explicit Running(const Pass& pass) : outer_(running) { running = &pass; }
  ~Running() { running = outer_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const Pass* const outer_;
};

// The error with the pass's name behind it, so that "file:line:" stays first.
absl::Status OfPass(const absl::Status& status, const Pass& pass) {
  if (status.ok()) return status;
  return FromPass(
      pass.name(),
      MakeError(ExitCodeOf(status),
                absl::StrCat(status.message(), " (pass ", pass.name(), ")")));
}

}  // namespace

std::string PassAtFault(const absl::Status& status) {
  const auto pass = status.GetPayload(kPassPayload);
  return pass ? std::string(*pass) : "";
}

absl::Status FromPass(absl::string_view pass, absl::Status status) {
  if (!pass.empty()) status.SetPayload(kPassPayload, absl::Cord(pass));
  return status;
}

absl::Status FailedCheckError(absl::string_view what) {
  const absl::Status error = CompilerBug("a check failed: ", what);
  return running == nullptr ? error : OfPass(error, *running);
}

void PassPipeline::Add(std::unique_ptr<Pass> pass, Phase phase) {
  std::vector<std::unique_ptr<Pass>> one;
  one.push_back(std::move(pass));
  AddGroup("", std::move(one), Repeat::kOnce, phase);
}

void PassPipeline::AddGroup(std::string name,
                            std::vector<std::unique_ptr<Pass>> passes,
                            Repeat repeat, Phase phase) {
  HT_CHECK(steps_.empty() || steps_.back().phase <= phase,
           "passes are added in the order of their phases");
  HT_CHECK(!passes.empty(), "a group has passes");
  steps_.push_back({std::move(name), std::move(passes), repeat, phase});
}

void PassPipeline::AtEndOf(Phase phase,
                           std::function<absl::Status(const Program&)> call) {
  observers_.push_back({phase, std::move(call)});
}

std::vector<std::string> PassPipeline::DumpNames() const {
  std::vector<std::string> names = {kSourceDump};
  for (const Step& step : steps_) {
    for (const auto& pass : step.passes) names.emplace_back(pass->name());
    if (!step.group.empty()) names.push_back(step.group);
  }
  return names;
}

class PassPipeline::Driver {
 public:
  Driver(PassPipeline& pipeline, Program& program, const Dumper& dumper)
      : pipeline_(pipeline),
        program_(program),
        dumper_(dumper),
        reached_(pipeline.settings_.input) {}

  absl::Status Run();

 private:
  absl::Status RunStep(const Step& step, PassRun* row);
  // One run: timed in the row, held to its word, dumped. `since`: where the
  // pass left the program the last time, 0 if it has not run.
  absl::Status RunPass(Pass& pass, uint64_t since, PassRun* row, bool* changed);
  absl::Status RunVerified(Pass& pass, uint64_t since, PassRun* row,
                           bool* changed);
  absl::Status Verified(absl::string_view after);
  absl::Status EndPhase(const Step& step);

  PassPipeline& pipeline_;
  Program& program_;
  const Dumper& dumper_;
  Phase reached_;
  VerifyMemo memo_;
  size_t dumped_ = 0;
};

absl::Status PassPipeline::Driver::Verified(absl::string_view after) {
  absl::Status verified = Verify(program_, {reached_, &memo_});
  // Without the memo every op is looked at.
  if (pipeline_.settings_.verify_each && verified.ok()) {
    verified = Verify(program_, {reached_});
  }
  if (verified.ok()) return verified;
  return FromPass(after,
                  CompilerBug("after pass ", after, ": ", verified.message()));
}

absl::Status PassPipeline::Driver::RunVerified(Pass& pass, uint64_t since,
                                               PassRun* row, bool* changed) {
  const bool verify_each = pipeline_.settings_.verify_each;
  const uint64_t before = verify_each ? Fingerprint(program_) : 0;
  const MonotonicTime start = MonotonicTime::Now();
  const absl::StatusOr<bool> ran =
      since > 0 ? pass.RunAgain(program_, since) : pass.Run(program_);
  if (!ran.ok()) return OfPass(ran.status(), pass);
  row->ms += absl::ToDoubleMilliseconds(MonotonicTime::Now() - start);
  row->changed |= *ran;
  *changed = *ran;
  if (!verify_each) return absl::OkStatus();
  if ((Fingerprint(program_) != before) != *ran) {
    return FromPass(
        pass.name(),
        CompilerBug("pass ", pass.name(), " says that it ",
                    *ran ? "changed" : "did not change",
                    " the program, but it did", *ran ? " not" : ""));
  }
  return Verified(pass.name());
}

absl::Status PassPipeline::Driver::RunPass(Pass& pass, uint64_t since,
                                           PassRun* row, bool* changed) {
  const Doing doing("compiling: pass", pass.name());
  const Running running_pass(pass);
  const absl::Status run = RunVerified(pass, since, row, changed);
  // Also what a pass left behind that did not verify: it is wanted most.
  const absl::Status dumped = dumper_.Dump(++dumped_, pass.name(), program_);
  HT_RETURN_IF_ERROR(run);
  return dumped;
}

absl::Status PassPipeline::Driver::RunStep(const Step& step, PassRun* row) {
  row->name = std::string(step.name());
  bool changed = false;
  if (step.group.empty()) return RunPass(*step.passes[0], 0, row, &changed);
  const size_t passes = step.passes.size();
  for (const auto& pass : step.passes) {
    row->passes.push_back({std::string(pass->name()), 0, false, 0, {}});
  }
  std::vector<uint64_t> seen(passes);  // where each left the program
  size_t idle = 0;
  for (size_t i = 0; idle < passes; i = (i + 1) % passes) {
    PassRun& run = row->passes[i];
    HT_RETURN_IF_ERROR(RunPass(*step.passes[i], seen[i], &run, &changed));
    ++run.times;
    seen[i] = program_.edit();
    // None leaves anything for itself, but each may for the others.
    idle = changed && step.repeat == Repeat::kUntilUnchanged ? 1 : idle + 1;
  }
  for (const PassRun& run : row->passes) {
    row->ms += run.ms;
    row->changed |= run.changed;
  }
  return dumper_.Dump(++dumped_, step.group, program_);
}

absl::Status PassPipeline::Driver::EndPhase(const Step& step) {
  reached_ = step.phase;
  HT_RETURN_IF_ERROR(Verified(step.name()));
  for (const Observer& observer : pipeline_.observers_) {
    if (observer.phase != reached_) continue;
    HT_RETURN_IF_ERROR(observer.call(program_));
  }
  return absl::OkStatus();
}

absl::Status PassPipeline::Driver::Run() {
  HT_RETURN_IF_ERROR(dumper_.Dump(0, kSourceDump, program_));
  HT_RETURN_IF_ERROR(Verify(program_, {reached_, &memo_}));
  const std::vector<Step>& steps = pipeline_.steps_;
  for (size_t i = 0; i < steps.size(); ++i) {
    PassRun& row = pipeline_.runs_.emplace_back();
    HT_RETURN_IF_ERROR(RunStep(steps[i], &row));
    const bool ends_phase =
        i + 1 == steps.size() || steps[i + 1].phase != steps[i].phase;
    if (ends_phase) HT_RETURN_IF_ERROR(EndPhase(steps[i]));
  }
  return absl::OkStatus();
}

absl::Status PassPipeline::Run(Program& program) {
  runs_.clear();
  HT_ASSIGN_OR_RETURN(const Dumper dumper,
                      Dumper::Make(settings_, DumpNames()));
  return Driver(*this, program, dumper).Run();
}

}  // namespace passes
}  // namespace halftone

#include "passes/pipeline.h"

#include <algorithm>
#include <optional>
#include <regex>

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

// The error with the pass's name behind it, so that "file:line:" stays first.
absl::Status OfPass(const absl::Status& status, const Pass& pass) {
  if (status.ok()) return status;
  return MakeError(ExitCodeOf(status),
                   absl::StrCat(status.message(), " (pass ", pass.name(), ")"));
}

}  // namespace

void PassPipeline::Add(std::unique_ptr<Pass> pass, Phase phase) {
  HT_CHECK(steps_.empty() || steps_.back().phase <= phase,
           "passes are added in the order of their phases");
  steps_.push_back({std::move(pass), phase});
}

void PassPipeline::AtEndOf(Phase phase,
                           std::function<absl::Status(const Program&)> call) {
  observers_.push_back({phase, std::move(call)});
}

absl::Status PassPipeline::EndPhase(Phase phase, const Program& program) const {
  for (const Observer& observer : observers_) {
    if (observer.phase == phase) HT_RETURN_IF_ERROR(observer.call(program));
  }
  return absl::OkStatus();
}

absl::Status PassPipeline::RunStep(size_t index, Program& program,
                                   VerifyMemo& memo) {
  Pass& pass = *steps_[index].pass;
  const Doing doing("compiling: pass", pass.name());
  const Phase phase = steps_[index].phase;
  const bool ends_phase =
      index + 1 == steps_.size() || steps_[index + 1].phase != phase;
  const uint64_t before = settings_.verify_each ? Fingerprint(program) : 0;

  const MonotonicTime start = MonotonicTime::Now();
  absl::StatusOr<bool> changed = pass.Run(program);
  if (!changed.ok()) return OfPass(changed.status(), pass);
  runs_.push_back({std::string(pass.name()),
                   absl::ToDoubleMilliseconds(MonotonicTime::Now() - start),
                   *changed});

  if (settings_.verify_each && (Fingerprint(program) != before) != *changed) {
    return CompilerBug("pass ", pass.name(), " says that it ",
                       *changed ? "changed" : "did not change",
                       " the program, but it did", *changed ? " not" : "");
  }
  if (ends_phase) reached_ = phase;
  if (ends_phase || settings_.verify_each) {
    absl::Status verified = Verify(program, {reached_, &memo});
    // Without the memo every op is looked at.
    if (settings_.verify_each && verified.ok()) {
      verified = Verify(program, {reached_});
    }
    if (!verified.ok()) {
      return CompilerBug("after pass ", pass.name(), ": ", verified.message());
    }
  }
  return ends_phase ? EndPhase(phase, program) : absl::OkStatus();
}

absl::Status PassPipeline::Run(Program& program) {
  runs_.clear();
  reached_ = settings_.input;
  std::vector<std::string> names = {"source"};
  for (const Step& step : steps_) names.emplace_back(step.pass->name());
  HT_ASSIGN_OR_RETURN(const Dumper dumper, Dumper::Make(settings_, names));
  HT_RETURN_IF_ERROR(dumper.Dump(0, "source", program));
  VerifyMemo memo;
  HT_RETURN_IF_ERROR(Verify(program, {settings_.input, &memo}));
  for (size_t i = 0; i < steps_.size(); ++i) {
    const absl::Status run = RunStep(i, program, memo);
    // Also what a pass left behind that did not verify: it is wanted most.
    const absl::Status dumped =
        dumper.Dump(i + 1, steps_[i].pass->name(), program);
    HT_RETURN_IF_ERROR(run);
    HT_RETURN_IF_ERROR(dumped);
  }
  return absl::OkStatus();
}

}  // namespace passes
}  // namespace halftone

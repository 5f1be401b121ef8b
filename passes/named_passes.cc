#include "passes/named_passes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/text/text.h"

namespace halftone {
namespace passes {
namespace {

constexpr char kAll[] = "all";

std::string Canonical(absl::string_view name) {
  return absl::StrReplaceAll(name, {{"_", "-"}});
}

Phase Before(Phase phase) {
  return static_cast<Phase>(static_cast<int>(phase) - 1);
}

absl::Status UnknownName(absl::string_view name) {
  std::vector<std::string> names = {kAll};
  for (const PassPhase& phase : AllPhases()) names.push_back(phase.name);
  for (const PassGroup& group : AllGroups()) names.push_back(group.name);
  const std::string inner = absl::StrCat(".", Canonical(name));
  std::string hint;
  for (const PassStep& step : AllSteps()) {
    names.push_back(step.name);
    if (absl::EndsWith(step.name, inner)) {
      hint = absl::StrCat("; nearest: ", step.name);
    }
  }
  if (hint.empty()) hint = NearestHint(Canonical(name), names);
  return UsageError("no pass is called \"", name, "\"", hint);
}

// The passes that a name stands for, less those that a compile leaves out
// where it is a phase's; and these phases.
struct Named {
  std::vector<const PassStep*> steps;  // of a pass or group
  std::vector<Phase> phases;
};

absl::StatusOr<Named> Find(absl::string_view name) {
  const std::string canonical = Canonical(name);
  Named named;
  for (const PassStep& step : AllSteps()) {
    if (step.name == canonical ||
        (!canonical.empty() && step.group() == canonical)) {
      named.steps.push_back(&step);
    }
  }
  for (const PassPhase& phase : AllPhases()) {
    if (canonical == kAll || phase.name == canonical) {
      named.phases.push_back(phase.phase);
    }
  }
  if (named.steps.empty() && named.phases.empty()) return UnknownName(name);
  return named;
}

// The furthest phase up to `most` whose rules the program fulfils; an error if
// it is no program at all.
absl::StatusOr<Phase> Reached(const Program& program, Phase most) {
  for (Phase phase = most; phase > Phase::kSource; phase = Before(phase)) {
    if (Verify(program, {phase}).ok()) return phase;
  }
  HT_RETURN_IF_ERROR(Verify(program, {Phase::kSource}));
  return Phase::kSource;
}

// "clean-up runs before fuse": the first two names next to each other that a
// compile runs the other way round; empty: none.
std::string OutOfOrder(const std::vector<std::string>& names) {
  const auto place = [](const std::string& name) -> size_t {
    const auto named = Find(name);
    if (!named.ok()) return 0;
    const std::vector<PassStep>& all = AllSteps();
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_first = named->steps.empty()
                                ? all[i].phase == named->phases[0]
                                : &all[i] == named->steps[0];
      if (is_first) return i;
    }
    return 0;
  };
  for (size_t i = 1; i < names.size(); ++i) {
    if (place(names[i]) < place(names[i - 1])) {
      return absl::StrCat(names[i], " runs before ", names[i - 1]);
    }
  }
  return "";
}

std::string NameOf(Phase phase) {
  for (const PassPhase& one : AllPhases()) {
    if (one.phase == phase) return one.name;
  }
  return "source";
}

PassPipeline::Settings AtMost(Phase at, Phase most) {
  PassPipeline::Settings settings;
  settings.verify_each = true;
  settings.input = std::min(at, most);
  return settings;
}

// Runs one name over a program of phase `at`.
absl::Status RunOne(const std::string& name, const PassInputs& inputs, Phase at,
                    Program& program) {
  HT_ASSIGN_OR_RETURN(const Phase before, PhaseBefore(name));
  PassPipeline::Settings settings = AtMost(at, before);
  Phase reached = settings.input;
  PassPipeline pipeline(std::move(settings));
  HT_RETURN_IF_ERROR(AddNamed(name, inputs, &reached, &pipeline));
  return pipeline.Run(program);
}

// Whether it goes well once the passes of its phase that a compile runs before
// it have run, too.
bool MissesOthers(const PassStep& step, const PassInputs& inputs, Phase at,
                  const Program& program) {
  const std::unique_ptr<Program> copy = Clone(program);
  PassPipeline::Settings settings = AtMost(at, Before(step.phase));
  const Phase as = settings.input;
  PassPipeline pipeline(std::move(settings));
  AddPhase(step.phase, inputs, as, &pipeline,
           [&step](const PassStep& other) { return &other < &step; });
  AddSteps({&step}, inputs, as, &pipeline);
  return pipeline.Run(*copy).ok();
}

// The first pass of its phase that a compile runs after it, if it and all that
// follow have nothing left to do: they have run.
std::string FollowerThatRan(const PassStep& step, const PassInputs& inputs,
                            Phase at, const Program& program) {
  const std::unique_ptr<Program> copy = Clone(program);
  PassPipeline pipeline(AtMost(at, step.phase));
  AddPhase(step.phase, inputs, AtMost(at, step.phase).input, &pipeline,
           [&step](const PassStep& other) { return &other > &step; });
  if (!pipeline.Run(*copy).ok() || Print(*copy) != Print(program)) return "";
  return pipeline.runs().empty() ? "" : pipeline.runs()[0].name;
}

// The furthest phase that has left ops in the program: its rules alone say
// nothing, as a program with nothing to update is not against the update's.
Phase Shown(const Program& program) {
  Phase shown = Phase::kSource;
  for (const auto& entry : program.entries()) {
    const Block& block = entry->block();
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      const Op& op = block.op(id);
      Phase left = Phase::kSource;
      if (op.body != nullptr) {
        left = Phase::kLowered;
      } else if (op.role == Role::kOptimize) {
        left = Phase::kUpdate;
      } else if (op.role == Role::kCommunicate) {
        left = Phase::kParallel;
      } else if (op.role == Role::kBackward) {
        left = Phase::kBackward;
      } else if (op.decision.reason != Reason::kNone) {
        left = Phase::kPrecision;
      }
      shown = std::max(shown, left);
    }
  }
  return shown;
}

// "precision runs before lower, which the program has behind it": why a
// compile would not run `name` over a program of phase `at`; empty: it would,
// as far as can be told.
std::string OutOfPlace(const std::string& name, const PassInputs& inputs,
                       Phase at, const Program& program) {
  const auto named = Find(name);
  if (!named.ok()) return "";
  const PassStep* const first =
      named->steps.empty() ? nullptr : named->steps[0];
  const Phase phase = first == nullptr ? named->phases[0] : first->phase;
  if (at < Before(phase)) {
    std::vector<std::string> missing;
    for (Phase p = Before(phase); p > at; p = Before(p)) {
      missing.insert(missing.begin(), NameOf(p));
    }
    return absl::StrCat(absl::StrJoin(missing, ", "),
                        missing.size() == 1 ? " runs" : " run", " before ",
                        name);
  }
  at = std::min(at, Shown(program));
  std::string follower = at > phase ? NameOf(at) : "";
  if (first != nullptr && at == phase) {
    follower = FollowerThatRan(*first, inputs, at, program);
  }
  if (!follower.empty()) {
    return absl::StrCat(name, " runs before ", follower,
                        ", which the program has behind it");
  }
  return first != nullptr && MissesOthers(*first, inputs, at, program)
             ? absl::StrCat("other passes of ", NameOf(phase), " run before ",
                            name)
             : "";
}

// The same of the first of `names` that fails, each over what those before it
// made of `program`.
std::string FirstOutOfPlace(const std::vector<std::string>& names,
                            const PassInputs& inputs, Program& program) {
  for (const std::string& name : names) {
    const auto at = Reached(program, Phase::kLowered);
    if (!at.ok()) return "";
    const std::unique_ptr<Program> before = Clone(program);
    if (RunOne(name, inputs, *at, program).ok()) continue;
    return OutOfPlace(name, inputs, *at, *before);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pass>> MakePass(absl::string_view name,
                                               const PassInputs& inputs) {
  HT_ASSIGN_OR_RETURN(const Named named, Find(name));
  if (named.steps.size() != 1) {
    return UsageError("\"", name, "\" is not one pass");
  }
  return named.steps[0]->make(inputs);
}

absl::StatusOr<Phase> PhaseBefore(absl::string_view name) {
  HT_ASSIGN_OR_RETURN(const Named named, Find(name));
  return Before(named.steps.empty() ? named.phases[0] : named.steps[0]->phase);
}

absl::Status AddNamed(absl::string_view name, const PassInputs& inputs,
                      Phase* reached, PassPipeline* pipeline) {
  HT_ASSIGN_OR_RETURN(const Named named, Find(name));
  if (!named.steps.empty()) {
    AddSteps(named.steps, inputs, *reached, pipeline);
  }
  for (const Phase phase : named.phases) {
    if (*reached == Before(phase)) *reached = phase;
    AddPhase(phase, inputs, *reached, pipeline);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PassRun>> RunNamed(
    const std::vector<std::string>& names, const PassInputs& inputs,
    PassPipeline::Settings settings, Program& program) {
  Phase before = Phase::kLowered;
  for (const std::string& name : names) {
    HT_ASSIGN_OR_RETURN(const Phase assumed, PhaseBefore(name));
    before = std::min(before, assumed);
  }
  HT_ASSIGN_OR_RETURN(settings.input, Reached(program, before));
  Phase reached = settings.input;
  PassPipeline pipeline(std::move(settings));
  for (const std::string& name : names) {
    HT_RETURN_IF_ERROR(AddNamed(name, inputs, &reached, &pipeline));
  }
  const std::unique_ptr<Program> input = Clone(program);
  const absl::Status ran = pipeline.Run(program);
  if (ExitCodeOf(ran) == ExitCode::kCompilerBug) {
    std::string order = OutOfOrder(names);
    if (order.empty()) order = FirstOutOfPlace(names, inputs, *input);
    if (!order.empty()) {
      return UsageError("in a compile ", order, " (halftone opt --list); as ",
                        "named: ", ran.message());
    }
  }
  HT_RETURN_IF_ERROR(ran);
  return pipeline.runs();
}

void AddPassRows(const std::vector<PassRun>& runs,
                 google::protobuf::RepeatedPtrField<proto::PassRow>* rows) {
  for (const PassRun& run : runs) {
    proto::PassRow& row = *rows->Add();
    row.set_name(run.name);
    row.set_ms(run.ms);
    row.set_changed(run.changed);
    if (run.times > 1) row.set_times(run.times);
    AddPassRows(run.passes, row.mutable_pass());
  }
}

}  // namespace passes
}  // namespace halftone

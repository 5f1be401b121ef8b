#include "tools/common/model_flags.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/message_differencer.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/shell_word.h"
#include "graph/import/neutral.h"
#include "graph/strategy/fields.h"
#include "graph/targets/target.h"
#include "graph/text/text.h"
#include "kernels/plugin/op_library.h"
#include "passes/options/strategy_fields.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/gpu/targets.h"
#include "runtime/log/shown_activity.h"
#include "tools/common/compile_model.h"
#include "tools/common/model_path.h"

namespace halftone {
namespace tools {
namespace {

bool IsSwitch(const StrategyField& field) {
  return field.descriptor->cpp_type() ==
         google::protobuf::FieldDescriptor::CPPTYPE_BOOL;
}

// What a flag's value sets: another field than the flag's own where that has
// a word for it (`--loss-scale dynamic`).
passes::Override OverrideBy(const StrategyField& own,
                            const std::string& value) {
  const std::string& flag = own.facts->flag().name();
  for (const StrategyField& field : StrategyFields()) {
    const proto::Flag& other = field.facts->flag();
    if (other.has_word() && other.name() == flag && other.word() == value) {
      return {field.path, other.value(), flag};
    }
  }
  return {own.path, value, flag};
}

std::string HelpOf(const StrategyField& field) {
  const proto::Flag& flag = field.facts->flag();
  return flag.has_help() ? flag.help()
                         : absl::StrJoin(field.facts->word(), " | ");
}

// The flag of a field, if it has one.
void AddFlag(Verb verb, const StrategyField& field, ModelFlags* flags) {
  const proto::Flag& flag = field.facts->flag();
  if (!flag.has_name() || flag.has_word()) return;
  if (IsSwitch(field)) {
    verb.AddSwitch(
        flag.name(),
        [flags, &field] {
          flags->overrides.push_back(OverrideBy(field, "true"));
        },
        HelpOf(field));
    return;
  }
  verb.AddOption(
      flag.name(),
      [flags, &field](const std::string& value) {
        flags->overrides.push_back(OverrideBy(field, value));
        return absl::OkStatus();
      },
      HelpOf(field));
}

std::string TargetOf(const ModelFlags& flags) {
  return flags.target.empty() ? ThisMachine() : flags.target;
}

// `model`: the bytes of the file that `source` is from.
absl::StatusOr<CompiledModel> CompileFrom(
    ModelFile source, const passes::StrategyFile& strategy,
    const ModelFlags& flags,
    absl::FunctionRef<absl::StatusOr<std::string>()> model) {
  HT_ASSIGN_OR_RETURN(const passes::Options options,
                      passes::ResolveOptions(strategy, flags.overrides));
  return CompileOrLeaveReproducer(std::move(source), options, TargetOf(flags),
                                  flags.compile, flags.threads, model);
}

absl::StatusOr<CompiledModel> FromItsSource(
    const CompiledModel& model, const passes::StrategyFile& strategy,
    const ModelFlags& flags) {
  return CompileFrom(model.WholeSource(), strategy, flags,
                     [&model] { return SerializeCompiledModel(model); });
}

// A model for the CPU runs on every machine.
bool RunsHere(const std::string& target) {
  return target == CpuTarget().name || target == ThisMachine();
}

// From the source kept in a compiled model, with its strategy unless another
// is given.
absl::StatusOr<CompiledModel> Recompile(const CompiledModel& model,
                                        const ModelFlags& flags) {
  passes::StrategyFile strategy = StrategyOf(model);
  if (!flags.strategy.empty()) {
    HT_ASSIGN_OR_RETURN(strategy, passes::ReadStrategy(flags.strategy));
  }
  ModelFlags recompiled = flags;
  if (recompiled.target.empty()) {
    recompiled.target = flags.runs_here && !RunsHere(model.target)
                            ? ThisMachine()
                            : model.target;
  }
  return FromItsSource(model, strategy, recompiled);
}

// "--level O2", "--set amp.level=O2".
std::string AsTyped(const passes::Override& override_) {
  if (override_.origin == "--set") {
    return absl::StrCat("--set ", ShellWord(absl::StrCat(override_.path, "=",
                                                         override_.value)));
  }
  const StrategyField& field = *FindStrategyField(override_.path);
  const std::string& word = field.facts->flag().word();
  if (!word.empty()) return absl::StrCat(override_.origin, " ", word);
  if (IsSwitch(field)) return override_.origin;
  return absl::StrCat(override_.origin, " ", ShellWord(override_.value));
}

// The strategy file, if there is one, and all overrides.
std::string AsTyped(const ModelFlags& flags) {
  std::vector<std::string> typed;
  if (!flags.strategy.empty()) {
    typed.push_back(absl::StrCat("--strategy ", ShellWord(flags.strategy)));
  }
  for (const passes::Override& override_ : flags.overrides) {
    typed.push_back(AsTyped(override_));
  }
  return absl::StrJoin(typed, " ");
}

// Whether a program compiled by these options is the model's.
bool IsSameGraph(const CompiledModel& model, const passes::Options& options) {
  using google::protobuf::util::MessageDifferencer;
  return MessageDifferencer::Equals(passes::GraphFieldsOf(model.strategy),
                                    passes::GraphFieldsOf(options.strategy)) &&
         MessageDifferencer::Equals(model.op_lists, options.op_lists);
}

// The first override that changes the graph by itself; else whatever was typed.
std::string GraphChange(const CompiledModel& model, const ModelFlags& flags) {
  for (const passes::Override& override_ : flags.overrides) {
    const auto alone = passes::ResolveOptions(StrategyOf(model), {override_});
    if (alone.ok() && !IsSameGraph(model, *alone)) return AsTyped(override_);
  }
  return AsTyped(flags);
}

void TakeSettings(const passes::Options& options, CompiledModel* model) {
  model->strategy = options.strategy;
  model->origins.clear();
  for (const auto& [path, origin] : options.origins) {
    proto::FieldOrigin& field = model->origins.emplace_back();
    field.set_path(path);
    field.set_origin(origin);
  }
}

// The settings that the flags ask for, of a model that they leave as it is. A
// strategy that says what the model was compiled by is no reason to compile.
absl::Status ApplyFlags(const ModelFlags& flags, CompiledModel* model) {
  const std::string compile =
      absl::StrCat("halftone compile ", ShellWord(flags.path), " ");
  passes::StrategyFile strategy = StrategyOf(*model);
  if (!flags.strategy.empty()) {
    HT_ASSIGN_OR_RETURN(strategy, passes::ReadStrategy(flags.strategy));
  }
  HT_ASSIGN_OR_RETURN(const passes::Options options,
                      passes::ResolveOptions(strategy, flags.overrides));
  if (!IsSameGraph(*model, options)) {
    return UsageError(GraphChange(*model, flags), " changes the graph of ",
                      flags.path, ": recompile: ", compile, AsTyped(flags),
                      " -o new.htc");
  }
  if (flags.compile.verify_each || !flags.compile.dump_dir.empty()) {
    const std::string watch =
        flags.compile.dump_dir.empty()
            ? "--verify-each"
            : absl::StrCat("--dump-dir ", ShellWord(flags.compile.dump_dir));
    return UsageError(watch, ": ", flags.path,
                      " is compiled, no pass runs: ", compile, watch);
  }
  TakeSettings(options, model);
  return absl::OkStatus();
}

absl::StatusOr<CompiledModel> FromCompiled(const std::string& content,
                                           const ModelFlags& flags,
                                           bool may_recompile) {
  // Another target is a reason to compile again, unless that is forbidden.
  HT_ASSIGN_OR_RETURN(CompiledModel model,
                      ParseCompiledModel(content, flags.path,
                                         may_recompile ? "" : TargetOf(flags)));
  const bool moves = !flags.target.empty() && flags.target != model.target;
  // Passes that are to be watched have to run.
  const bool watched =
      !flags.compile.dump_dir.empty() || flags.compile.verify_each ||
      !flags.compile.report_entry.empty() || !flags.compile.outputs.empty();
  const bool changes_graph = std::any_of(
      flags.overrides.begin(), flags.overrides.end(),
      [](const auto& o) { return !passes::LeavesGraphAlone(o.path); });
  if (may_recompile &&
      (changes_graph || !flags.strategy.empty() || moves || watched)) {
    return Recompile(model, flags);
  }
  if (watched || !flags.strategy.empty() || !flags.overrides.empty()) {
    HT_RETURN_IF_ERROR(ApplyFlags(flags, &model));
  }
  if (flags.runs_here && !RunsHere(model.target)) {
    return OtherTargetError(flags.path, model.target, ThisMachine());
  }
  return model;
}

}  // namespace

passes::StrategyFile StrategyOf(const CompiledModel& model) {
  std::map<std::string, std::string> origins;
  for (const proto::FieldOrigin& origin : model.origins) {
    origins[origin.path()] = origin.origin();
  }
  return passes::RestoreStrategy(model.strategy, origins, model.op_lists);
}

absl::StatusOr<CompiledModel> RecompileWith(
    const CompiledModel& model, const std::vector<passes::Override>& overrides,
    const std::vector<std::string>& taps, int threads,
    const std::string& report_entry) {
  ModelFlags flags;
  flags.overrides = overrides;
  flags.threads = threads;
  flags.compile.taps = taps;
  flags.compile.report_entry = report_entry;
  return Recompile(model, flags);
}

absl::StatusOr<std::unique_ptr<Program>> UnloweredProgram(
    const CompiledModel& model) {
  std::unique_ptr<Program> unlowered;
  ModelFlags flags;
  flags.compile.before_lowering = [&unlowered](const Program& program) {
    unlowered = Clone(program);
  };
  HT_RETURN_IF_ERROR(Recompile(model, flags).status());
  if (unlowered == nullptr) return CompilerBug("no program was lowered");
  return unlowered;
}

absl::StatusOr<CompiledModel> RecompileAs(
    const CompiledModel& model, const passes::StrategyFile& strategy) {
  ModelFlags flags;
  flags.target = model.target;
  return FromItsSource(model, strategy, flags);
}

void AddOpLibraryFlag(Verb verb, std::vector<std::string>* paths) {
  verb.AddOption(
      "--op-library",
      [paths](const std::string& path) {
        paths->push_back(path);
        return absl::OkStatus();
      },
      "a shared library with ops of your own (docs/op_library.md);\n"
      "may be repeated");
}

absl::Status LoadOpLibraries(const std::vector<std::string>& paths) {
  if (!paths.empty()) runtime::MoreGpuKernels() = kernels::AddGpuKernels;
  for (const std::string& path : paths) {
    HT_RETURN_IF_ERROR(kernels::LoadOpLibrary(path));
  }
  return absl::OkStatus();
}

Flag AddModelFlags(Verb verb, ModelFlags* flags) {
  Flag model = verb.AddOption("model", &flags->path,
                              "model, program, compiled model, run directory "
                              "or checkpoint")
                   .Required();
  AddStrategyFlags(verb, flags);
  return model;
}

void AddStrategyFlags(Verb verb, ModelFlags* flags) {
  std::vector<std::string> names;
  for (const Target& target : Targets()) names.push_back(target.name);
  verb.AddOption("--strategy", &flags->strategy, "strategy file (.pbtxt)");
  verb.AddOption(
      "--target", &flags->target,
      absl::StrCat(absl::StrJoin(names, " | "), "; default: this machine"));
  verb.AddOption(
          "--set",
          [flags](const std::string& setting) -> absl::Status {
            const size_t equals = setting.find('=');
            if (equals == std::string::npos) {
              return UsageError("--set: expected path=value, found ", setting);
            }
            flags->overrides.push_back({setting.substr(0, equals),
                                        setting.substr(equals + 1), "--set"});
            return absl::OkStatus();
          },
          "path=value: any field of the strategy; a field's own flag wins")
      .UpToWords(1000);
  for (const StrategyField& field : StrategyFields()) {
    AddFlag(verb, field, flags);
  }
  AddOpLibraryFlag(verb, &flags->op_libraries);
  verb.AddSwitch("--verify-each", &flags->compile.verify_each,
                 "verify after every pass");
  const Flag dump_dir =
      verb.AddOption("--dump-dir", &flags->compile.dump_dir,
                     "write the program after each pass there");
  verb.AddOption("--dump-after", &flags->compile.dump_after,
                 "only after passes whose name matches (regular expression)")
      .Needs(dump_dir);
}

std::string ThisMachine() { return runtime::DefaultTarget(); }

absl::StatusOr<passes::KernelSet> KernelSetFor(const std::string& target) {
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                      runtime::KernelKeysOf(target));
  return passes::KernelSet(target, keys);
}

absl::StatusOr<FileKind> KindOf(const ModelFlags& flags) {
  HT_ASSIGN_OR_RETURN(const ModelPath path, FindModel(flags.path));
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(path.file, kMaxModelBytes));
  return DetectKind(content, path.file);
}

absl::StatusOr<CompiledModel> LoadOrCompile(const ModelFlags& named,
                                            bool may_recompile) {
  ModelFlags flags = named;
  HT_RETURN_IF_ERROR(LoadOpLibraries(flags.op_libraries));
  HT_ASSIGN_OR_RETURN(const ModelPath path, FindModel(flags.path));
  flags.path = path.file;
  const Doing doing("reading the model", flags.path);
  const runtime::ShownActivity shown("compile");
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(flags.path, kMaxModelBytes));
  HT_ASSIGN_OR_RETURN(const FileKind kind, DetectKind(content, flags.path));
  if (kind == FileKind::kCompiledModel) {
    return FromCompiled(content, flags, may_recompile);
  }
  HT_ASSIGN_OR_RETURN(ModelFile source, ParseModel(content, flags.path));
  const std::vector<std::string> neutral = DropNeutral(&*source.model);
  passes::StrategyFile strategy;
  if (!flags.strategy.empty()) {
    HT_ASSIGN_OR_RETURN(strategy, passes::ReadStrategy(flags.strategy));
  }
  HT_ASSIGN_OR_RETURN(CompiledModel model,
                      CompileFrom(std::move(source), strategy, flags,
                                  [&content] { return content; }));
  if (!neutral.empty()) {
    proto::Note& note = *model.report.add_note();
    note.set_code("P8");
    note.set_text(absl::StrCat("left out, as it changes nothing here: ",
                               absl::StrJoin(neutral, ", ")));
  }
  return model;
}

}  // namespace tools
}  // namespace halftone

#include "tools/common/command_line.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/base/wrap.h"

namespace halftone {
namespace tools {
namespace {

// Of a help page: what stands between prose and flags.
constexpr char kUsage[] = "\nUsage: ";

class VerbFormatter : public CLI::Formatter {
 public:
  explicit VerbFormatter(std::string help) : help_(std::move(help)) {}
  std::string make_description(const CLI::App*) const override {
    return help_ + "\n";
  }

 private:
  std::string help_;
};

std::vector<std::string> VerbNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) {
    names.push_back(verb->get_name());
  }
  return names;
}

// "--ranks", ...: the long ones.
std::vector<std::string> FlagNames(const CLI::App& verb) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back("--" + name);
    }
  }
  return flags;
}

FlagDoc DocOf(const CLI::Option& option) {
  FlagDoc doc;
  for (const std::string& name : option.get_snames()) {
    doc.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    doc.names.push_back("--" + name);
  }
  if (doc.names.empty()) doc.word = option.get_name(true);
  doc.help = option.get_description();
  doc.takes_value = option.get_expected_max() > 0;
  return doc;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The verb that was typed, or the one below it (`ckpt ls`); none: `app`.
CLI::App& Chosen(CLI::App& app) {
  const auto below = app.get_subcommands();
  return below.empty() ? app : Chosen(*below[0]);
}

// "ckpt ls": a verb as it is typed.
std::string TypedName(const CLI::App& verb) {
  const CLI::App* const above = verb.get_parent();
  return above == nullptr || above->get_parent() == nullptr
             ? verb.get_name()
             : absl::StrCat(TypedName(*above), " ", verb.get_name());
}

// Errors with the nearest name. A first word that is none of the verbs, or a
// second one that is none of those below; with --help behind it, too.
absl::Status CheckVerb(const CLI::App& app,
                       const std::vector<std::string>& words) {
  const std::vector<std::string> verbs = VerbNames(app);
  if (verbs.empty()) return absl::OkStatus();
  if (words.empty()) return UsageError("no verb; see halftone --help");
  if (!Has(verbs, words[0])) {
    std::vector<std::string> known = verbs;
    for (const std::string& flag : FlagNames(app)) known.push_back(flag);
    if (words[0] == "-h" || Has(known, words[0])) return absl::OkStatus();
    return UsageError("no verb or flag is called \"", words[0], "\"",
                      NearestHint(words[0], known), " (see halftone --help)");
  }
  const std::vector<std::string> below =
      VerbNames(*app.get_subcommand(words[0]));
  if (below.empty() || words.size() < 2 || words[1][0] == '-' ||
      Has(below, words[1])) {
    return absl::OkStatus();
  }
  return UsageError(words[0], ": it has no \"", words[1], "\"",
                    NearestHint(words[1], below), " (see halftone ", words[0],
                    " --help)");
}

// A word that looks like a flag and is none of the verb's.
absl::Status CheckFlags(CLI::App& verb, const std::vector<std::string>& words) {
  // What follows a launched command's name is not launch's.
  if (verb.get_prefix_command()) return absl::OkStatus();
  const std::vector<std::string> flags = FlagNames(verb);
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.rfind("--", 0) != 0) continue;
    const std::string flag = word.substr(0, word.find('='));
    if (!Has(flags, flag)) return Verb(&verb).UnknownFlagError(flag);
  }
  return absl::OkStatus();
}

// CLI11's check: what is wrong with a word; empty: nothing.
std::string RefuseEmpty(const std::string& word) {
  return word.empty() ? "expected a value, found an empty word" : "";
}

// What CommandLine::Parse has been given, while it parses.
thread_local const std::vector<std::string>* parsed_words = nullptr;

// Whether `holds` of a file or directory that the word may name: "x",
// "--out=x", "npz:x".
template <typename Holds>
bool Names(const std::string& word, const Holds& holds) {
  size_t begin = 0;
  while (true) {
    if (holds(word.substr(begin))) return true;
    const size_t end = word.find_first_of("=:", begin);
    if (end == std::string::npos) return false;
    begin = end + 1;
  }
}

// The directory of a run of which `path` is that itself, its ckpt or a
// checkpoint; empty: it is of none.
std::filesystem::path RunOf(const std::string& path) {
  std::error_code error;
  std::filesystem::path run = std::filesystem::canonical(path, error);
  if (error || !std::filesystem::is_directory(run, error)) return "";
  if (absl::StartsWith(run.filename().string(), "step-")) {
    run = run.parent_path();
  }
  if (run.filename() == "ckpt") run = run.parent_path();
  const bool is_run = std::filesystem::exists(run / "model.htc", error) ||
                      std::filesystem::exists(run / "metrics.jsonl", error);
  return is_run ? run : "";
}

// Whether `file` is one of those that a run keeps in its directory; others may
// lie there, too, and are made anew.
bool IsKeptByRun(const std::string& file, const std::filesystem::path& run) {
  static constexpr absl::string_view kKept[] = {
      "model.htc",     "strategy.pbtxt", "tuning.json",
      "metrics.jsonl", "summary.json",   "failure.json",
      "fetches",       "ckpt",           "capsules",
      "logs"};
  std::error_code error;
  const std::filesystem::path there = std::filesystem::canonical(file, error);
  const std::filesystem::path within = there.lexically_relative(run);
  if (error || within.empty()) return false;
  const std::string first = within.begin()->string();
  return absl::c_linear_search(kKept, first) ||
         absl::StartsWith(first, "events.out.tfevents.");
}

// The page on the terminal that it goes to. Examples are copied: they stay as
// they are.
std::string Fitted(const std::string& page) {
  const size_t usage = std::min(page.find(kUsage), page.size());
  return page.substr(0, usage) +
         FittedLines(page.substr(usage), ColumnsOf(stdout));
}

}  // namespace

Flag Flag::Required(bool required) { return Flag(option_->required(required)); }

Flag Flag::Help(const std::string& help) {
  return Flag(option_->description(help));
}

Flag Flag::Group(const std::string& title) {
  return Flag(option_->group(title));
}

Flag Flag::InRange(int64_t least, int64_t most) {
  return Flag(option_->check(CLI::Range(least, most)));
}

Flag Flag::Seconds() {
  constexpr double kYear = 365.0 * 24 * 3600;
  return Flag(option_->check([](const std::string& word) {
    double seconds = 0;
    const bool fits =
        absl::SimpleAtod(word, &seconds) && seconds > 0 && seconds <= kYear;
    return fits ? std::string()
                : absl::StrCat("expected seconds, more than 0 and at most a ",
                               "year's, found ", word);
  }));
}

Flag Flag::Writes(const std::string& anew) {
  return Flag(option_->check([anew](const std::string& file) {
    std::error_code error;
    if (parsed_words == nullptr ||
        (!anew.empty() && absl::EndsWith(file, anew)) ||
        !std::filesystem::is_regular_file(file, error)) {
      return std::string();
    }
    const auto is_file = [&](const std::string& name) {
      return std::filesystem::equivalent(name, file, error);
    };
    const auto is_run = [&](const std::string& name) {
      const std::filesystem::path run = RunOf(name);
      return !run.empty() && IsKeptByRun(file, run);
    };
    int64_t names = 0;
    for (const std::string& word : *parsed_words) {
      if (Names(word, is_run)) {
        return absl::StrCat(file, " is a file of the run ", word,
                            ", and would be lost where it is written: name ",
                            "another file");
      }
      names += Names(word, is_file) ? 1 : 0;
    }
    return names < 2
               ? std::string()
               : absl::StrCat(file, " is named twice, and would be lost where ",
                              "it is written: name another file");
  }));
}

Flag Flag::Needs(Flag other) { return Flag(option_->needs(other.option_)); }

Flag Flag::Excludes(Flag other) {
  return Flag(option_->excludes(other.option_));
}

Flag Flag::WithCommas() {
  return Flag(
      option_->delimiter(',')->allow_extra_args(false)->check(RefuseEmpty));
}

Flag Flag::UpToWords(int most) { return Flag(option_->expected(1, most)); }

Verb Verb::AddVerb(const std::string& name, const std::string& summary,
                   const std::string& help) {
  Verb verb(app_->add_subcommand(name, summary));
  verb.SetHelp(help);
  return verb;
}

void Verb::SetHelp(const std::string& help) {
  auto formatter = std::make_shared<VerbFormatter>(help);
  formatter->column_width(34);
  app_->formatter(formatter);
}

void Verb::RequireVerb() { app_->require_subcommand(1); }

void Verb::SetVersion(std::function<std::string()> text) {
  app_->set_version_flag("--version", std::move(text));
}

void Verb::SetRun(std::function<void()> run) { app_->callback(std::move(run)); }

void Verb::TakeCommand() { app_->prefix_command(); }

std::vector<std::string> Verb::command() const { return app_->remaining(); }

Flag Verb::AddOption(const std::string& names, std::string* value,
                     const std::string& help) {
  return Flag(app_->add_option(names, *value, help)->check(RefuseEmpty));
}

Flag Verb::AddOption(const std::string& names, int* value,
                     const std::string& help) {
  return Flag(app_->add_option(names, *value, help));
}

Flag Verb::AddOption(const std::string& names, int64_t* value,
                     const std::string& help) {
  return Flag(app_->add_option(names, *value, help));
}

Flag Verb::AddOption(const std::string& names, std::optional<int64_t>* value,
                     const std::string& help) {
  return Flag(app_->add_option(names, *value, help));
}

Flag Verb::AddOption(const std::string& names, double* value,
                     const std::string& help) {
  return Flag(app_->add_option(names, *value, help));
}

Flag Verb::AddOption(const std::string& names, std::vector<std::string>* values,
                     const std::string& help) {
  return Flag(app_->add_option(names, *values, help));
}

Flag Verb::AddOption(const std::string& names,
                     std::function<absl::Status(const std::string& value)> take,
                     const std::string& help) {
  const auto take_all = [take](const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      const absl::Status taken = take(value);
      if (!taken.ok()) {
        throw CLI::ValidationError(std::string(taken.message()));
      }
    }
  };
  return Flag(
      app_->add_option_function<std::vector<std::string>>(names, take_all, help)
          ->type_size(1)
          ->expected(1)
          ->allow_extra_args(false)  // the next word is the verb's
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
}

Flag Verb::AddIgnored(const std::string& names, std::function<void()> seen,
                      const std::string& help) {
  return Flag(app_->add_option_function<std::string>(
      names, [seen](const std::string&) { seen(); }, help));
}

Flag Verb::AddSwitch(const std::string& names, bool* value,
                     const std::string& help) {
  return Flag(app_->add_flag(names, *value, help));
}

Flag Verb::AddSwitch(const std::string& names, std::string* value,
                     const std::string& help) {
  return Flag(app_->add_flag(names, *value, help));
}

Flag Verb::AddSwitch(const std::string& names, std::function<void()> seen,
                     const std::string& help) {
  return Flag(app_->add_flag_callback(names, std::move(seen), help));
}

std::string Verb::name() const { return app_->get_name(); }

std::vector<Verb> Verb::verbs() const {
  std::vector<Verb> verbs;
  for (CLI::App* verb : app_->get_subcommands({})) verbs.emplace_back(verb);
  return verbs;
}

VerbDoc Verb::Doc() const {
  VerbDoc doc;
  doc.name = app_->get_name();
  doc.summary = app_->get_description();
  // Not help(), which is that of the verb that was typed.
  const std::string page = app_->get_formatter()->make_help(
      app_, app_->get_name(), CLI::AppFormatMode::Normal);
  doc.help = page.substr(0, page.find(kUsage));
  doc.takes_command = app_->get_prefix_command();
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    doc.flags.push_back(DocOf(*option));
  }
  for (const Verb& verb : verbs()) doc.verbs.push_back(verb.Doc());
  return doc;
}

std::string Verb::HelpPage(const std::string& before) const {
  return app_->help(before);
}

absl::Status Verb::UnknownFlagError(const std::string& flag) const {
  const std::string typed = TypedName(*app_);
  return UsageError(typed, ": no flag is called ", flag,
                    NearestHint(flag, FlagNames(*app_)), " (see halftone ",
                    typed, " --help)");
}

CommandLine::CommandLine(const std::string& program)
    : app_(std::make_unique<CLI::App>("", program)) {}

CommandLine::~CommandLine() = default;

Verb CommandLine::program() { return Verb(app_.get()); }

absl::StatusOr<std::string> CommandLine::Parse(
    const std::vector<std::string>& words) {
  HT_RETURN_IF_ERROR(CheckVerb(*app_, words));
  // Flags are looked at before what else is wrong, and before any help.
  const auto check_flags = [&] {
    CLI::App& verb = Chosen(*app_);
    return &verb == app_.get() ? absl::OkStatus() : CheckFlags(verb, words);
  };
  parsed_words = &words;
  const auto parsed = absl::MakeCleanup([] { parsed_words = nullptr; });
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForVersion& version) {
    HT_RETURN_IF_ERROR(check_flags());
    return absl::StrCat(version.what(), "\n");
  } catch (const CLI::Success&) {
    HT_RETURN_IF_ERROR(check_flags());
    return Fitted(app_->help());
  } catch (const CLI::ParseError& error) {
    HT_RETURN_IF_ERROR(check_flags());
    const CLI::App& verb = Chosen(*app_);
    if (&verb == app_.get()) return UsageError(error.what());
    const std::string typed = TypedName(verb);
    return UsageError(typed, ": ", error.what(), " (see halftone ", typed,
                      " --help)");
  }
  return "";
}

std::string WithUnderscores(const std::string& names) {
  std::string all = names;
  const std::vector<std::string> spelled = absl::StrSplit(names, ',');
  for (const std::string& name : spelled) {
    if (name.size() < 3 || name.find('-', 2) == std::string::npos) continue;
    absl::StrAppend(&all, ",--",
                    absl::StrReplaceAll(name.substr(2), {{"-", "_"}}));
  }
  return all;
}

absl::Status ParseNumbers(const char* flag, const std::string& text,
                          std::vector<int>* numbers) {
  const std::vector<std::string> items = absl::StrSplit(text, ',');
  for (const std::string& item : items) {
    int number = 0;
    if (!absl::SimpleAtoi(item, &number) || number < 0) {
      return UsageError(flag, " ", text, ": expected numbers with commas, ",
                        "found \"", item, "\"");
    }
    numbers->push_back(number);
  }
  return absl::OkStatus();
}

}  // namespace tools
}  // namespace halftone

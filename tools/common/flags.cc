#include "tools/common/flags.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace tools {
namespace {

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

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

CLI::App* AddVerb(CLI::App& app, const std::string& name,
                  const std::string& summary, const std::string& help) {
  CLI::App* verb = app.add_subcommand(name, summary);
  SetHelp(*verb, help);
  return verb;
}

void SetHelp(CLI::App& app, const std::string& help) {
  auto formatter = std::make_shared<VerbFormatter>(help);
  formatter->column_width(34);
  app.formatter(formatter);
}

std::vector<std::string> FlagNames(const CLI::App& verb) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back("--" + name);
    }
  }
  return flags;
}

absl::Status UnknownFlagError(const CLI::App& verb, const std::string& flag) {
  return UsageError(verb.get_name(), ": no flag is called ", flag,
                    NearestHint(flag, FlagNames(verb)), " (see halftone ",
                    verb.get_name(), " --help)");
}

const CLI::App* ChosenVerb(const CLI::App& app) {
  const auto below = app.get_subcommands();
  if (below.empty()) return nullptr;
  const CLI::App* deeper = ChosenVerb(*below[0]);
  return deeper == nullptr ? below[0] : deeper;
}

absl::Status CheckVerb(const CLI::App& app,
                       const std::vector<std::string>& words) {
  if (words.empty()) return UsageError("no verb; see halftone --help");
  const std::vector<std::string> verbs = VerbNames(app);
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

absl::Status CheckFlags(const CLI::App& verb,
                        const std::vector<std::string>& words) {
  // What follows a launched command's name is not launch's.
  if (verb.get_prefix_command()) return absl::OkStatus();
  const std::vector<std::string> flags = FlagNames(verb);
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.rfind("--", 0) != 0) continue;
    const std::string flag = word.substr(0, word.find('='));
    if (!Has(flags, flag)) return UnknownFlagError(verb, flag);
  }
  return absl::OkStatus();
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

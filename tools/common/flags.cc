#include "tools/common/flags.h"

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

}  // namespace

CLI::App* AddVerb(CLI::App& app, const std::string& name,
                  const std::string& summary, const std::string& help) {
  CLI::App* verb = app.add_subcommand(name, summary);
  auto formatter = std::make_shared<VerbFormatter>(help);
  formatter->column_width(34);
  verb->formatter(formatter);
  return verb;
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

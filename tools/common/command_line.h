// The command line, as verbs see it. CLI11 parses it, which command_line.cc
// alone knows: its templates took each verb 4 to 5 seconds of compiling. A new
// kind of flag is a method here and its lines there.
#ifndef HALFTONE_TOOLS_COMMON_COMMAND_LINE_H_
#define HALFTONE_TOOLS_COMMON_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace halftone {
namespace tools {

// What the help page of a verb says, as data: for completion and the manual.
struct FlagDoc {
  std::vector<std::string> names;  // "-o", "--out"; none: a word without name
  std::string word;                // its name on the page, where it has none
  std::string help;
  bool takes_value = true;
  // "--out", "-o", or the word.
  const std::string& shown() const {
    return names.empty() ? word : names.back();
  }
};
struct VerbDoc {
  std::string name, summary;
  std::string help;  // examples first
  bool takes_command = false;
  std::vector<FlagDoc> flags;  // in the page's order
  std::vector<VerbDoc> verbs;  // below it
};
// A flag of a verb, or one of its words without a name: a handle, to be copied.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag Required(bool required = true);
  Flag Help(const std::string& help);    // in place of what it was made with
  Flag Group(const std::string& title);  // of the help page
  Flag InRange(int64_t least, int64_t most);
  Flag Seconds();  // more than 0, up to a year
  // The file that it names is written. One that another word names, too, or
  // that a run keeps which another word names, would be lost: an error, but of
  // names that end so: it is made anew in its place.
  Flag Writes(const std::string& anew = "");
  Flag Needs(Flag other);
  Flag Excludes(Flag other);
  Flag WithCommas();         // several values: in one word, a,b,c, not empty
  Flag UpToWords(int most);  // that may follow it, a value each

 private:
  CLI::Option* option_;
};

// A verb, or the program itself, which has verbs below it: a handle.
class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  // `summary` is its line in the help of this one, `help` (examples first) the
  // head of its own.
  Verb AddVerb(const std::string& name, const std::string& summary,
               const std::string& help);
  void SetHelp(const std::string& help);
  void RequireVerb();                                  // one of those below
  void SetVersion(std::function<std::string()> text);  // of --version
  void SetRun(std::function<void()> run);  // if it is the one that was typed
  // What follows the first word that is not its own is a command's.
  void TakeCommand();
  std::vector<std::string> command() const;

  // `names` are "-o,--out"; without dashes it is a word without a name. `value`
  // keeps what it has where nothing is typed; an empty word, as of a shell's
  // variable that is not set, is an error.
  Flag AddOption(const std::string& names, std::string* value,
                 const std::string& help);
  Flag AddOption(const std::string& names, int* value, const std::string& help);
  Flag AddOption(const std::string& names, int64_t* value,
                 const std::string& help);
  Flag AddOption(const std::string& names, std::optional<int64_t>* value,
                 const std::string& help);
  Flag AddOption(const std::string& names, double* value,
                 const std::string& help);
  Flag AddOption(const std::string& names, std::vector<std::string>* values,
                 const std::string& help);
  // May be repeated: each value goes to `take`, whose error ends the program.
  Flag AddOption(const std::string& names,
                 std::function<absl::Status(const std::string& value)> take,
                 const std::string& help);
  // Calls `seen`; its value means nothing.
  Flag AddIgnored(const std::string& names, std::function<void()> seen,
                  const std::string& help);
  // Sets `*value`, or clears it: "!--no-shuffle".
  Flag AddSwitch(const std::string& names, bool* value,
                 const std::string& help);
  // "true", or what is typed behind "=".
  Flag AddSwitch(const std::string& names, std::string* value,
                 const std::string& help);
  Flag AddSwitch(const std::string& names, std::function<void()> seen,
                 const std::string& help);

  std::string name() const;
  std::vector<Verb> verbs() const;  // below it
  VerbDoc Doc() const;              // and of those
  // Its page; `before`: the names above its own.
  std::string HelpPage(const std::string& before) const;
  // An error (kUsage) that says so and names the nearest flag.
  absl::Status UnknownFlagError(const std::string& flag) const;

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  explicit CommandLine(const std::string& program);
  ~CommandLine();
  Verb program();

  // Runs the verb that `words` name. Returns what --help or --version, if one
  // was typed, shows. Errors (kUsage): words that do not parse, with the
  // nearest name of a verb or flag; none of them runs anything.
  absl::StatusOr<std::string> Parse(const std::vector<std::string>& words);

 private:
  std::unique_ptr<CLI::App> app_;
};

// "--max-restarts,-m" with "--max_restarts": other launchers' spelling.
std::string WithUnderscores(const std::string& names);
// "0,1,3". Errors (kUsage) name the flag.
absl::Status ParseNumbers(const char* flag, const std::string& text,
                          std::vector<int>* numbers);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_COMMAND_LINE_H_

// --fail-on: conditions at which compile, inspect and lint exit with 3.
#ifndef HALFTONE_TOOLS_REPORT_FAIL_ON_H_
#define HALFTONE_TOOLS_REPORT_FAIL_ON_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/common/command_line.h"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

// "standalone>0, cast_bytes>1e6, lint:P*": totals of `inspect --json` (a total
// per step may be written without _per_step) against numbers, and globs of
// codes of notes. Any that holds is a failure.
class FailOn {
 public:
  // Adds conditions, with commas between. Errors (kUsage) name the condition,
  // what was expected, and the nearest name of a total or code.
  absl::Status Add(absl::string_view conditions);
  // One line each: "standalone>0: it is 2", "lint:P*: P1: the loss ...".
  std::vector<std::string> Failures(const ModelFacts& facts) const;

 private:
  struct Condition {
    std::string text;        // as it was typed
    std::string code_glob;   // of a note's code; empty: a total
    std::string total;       // key of TotalsJson
    std::string comparison;  // < <= > >= == !=
    double number = 0;
  };
  absl::Status AddOne(absl::string_view text);
  absl::Status AddCodes(absl::string_view glob, Condition condition);

  std::vector<Condition> conditions_;
};

// --fail-on, which may be repeated.
void AddFailOnFlag(Verb verb, FailOn* fail_on);
// Shows the failures on stderr; the exit code: 0, or kDiffer if there is one.
int ShowFailures(const FailOn& fail_on, const ModelFacts& facts);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_FAIL_ON_H_

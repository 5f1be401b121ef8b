// All verbs, in the order of `halftone --help`.
#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "tools/common/command_line.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

constexpr char kHelp[] =
    "examples:\n"
    "  halftone compile models/mnist_convnet.pbtxt \\\n"
    "      --strategy models/mnist_o1.pbtxt -o mnist.htc\n"
    "  halftone inspect mnist.htc\n"
    "  halftone run mnist.htc --data idx:models/digits --out runs/mnist\n"
    "  halftone launch --ranks 2 run mnist.htc --data idx:models/digits\n"
    "  halftone compile --help\n\n"
    "Compiles program graphs with mixed precision, trains them on many ranks,\n"
    "explains every cast.";

struct NamedVerb {
  const char* name;
  void (*add)(Verb app, Outcome* outcome);
};
constexpr NamedVerb kVerbs[] = {
    {"compile", AddCompile}, {"run", AddRun},
    {"launch", AddLaunch},   {"eval", AddEval},
    {"predict", AddPredict}, {"inspect", AddInspect},
    {"explain", AddExplain}, {"diff", AddDiff},
    {"compare", AddCompare}, {"replay", AddReplay},
    {"reduce", AddReduce},   {"lint", AddLint},
    {"report", AddReport},   {"export", AddExport},
    {"import", AddImport},   {"plan", AddPlan},
    {"tune", AddTune},       {"search", AddSearch},
    {"bisect", AddBisect},   {"ckpt", AddCkpt},
    {"data", AddData},       {"ops", AddOps},
    {"zoo", AddZoo},         {"opt", AddOpt},
    {"doctor", AddDoctor},   {"completion", AddCompletion},
    {"version", AddVersion}};

}  // namespace

void AddVerbs(Verb app, Outcome* outcome, absl::string_view called) {
  app.SetHelp(kHelp);
  app.RequireVerb();
  app.SetVersion(VersionText);
  const bool is_one = called != "completion" &&
                      absl::c_any_of(kVerbs, [called](const NamedVerb& verb) {
                        return verb.name == called;
                      });
  for (const NamedVerb& verb : kVerbs) {
    if (!is_one || verb.name == called) verb.add(app, outcome);
  }
}

}  // namespace tools
}  // namespace halftone

// All verbs, in the order of `halftone --help`.
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

}  // namespace

void AddVerbs(Verb app, Outcome* outcome) {
  app.SetHelp(kHelp);
  app.RequireVerb();
  app.SetVersion(VersionText);
  for (auto add : {AddCompile,    AddRun,     AddLaunch, AddEval,    AddPredict,
                   AddInspect,    AddExplain, AddDiff,   AddCompare, AddReplay,
                   AddReduce,     AddLint,    AddReport, AddExport,  AddImport,
                   AddPlan,       AddTune,    AddSearch, AddBisect,  AddCkpt,
                   AddData,       AddOps,     AddZoo,    AddOpt,     AddDoctor,
                   AddCompletion, AddVersion}) {
    add(app, outcome);
  }
}

}  // namespace tools
}  // namespace halftone

// halftone compile: a program graph and a strategy to a compiled model.
#include <malloc.h>

#include <limits>
#include <memory>
#include <utility>

#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/compile_report.h"
#include "tools/report/fail_on.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct CompileFlags {
  ModelFlags model;
  std::string out;
  FailOn fail_on;
  bool json = false;
};

// How many bytes there are.
absl::StatusOr<int64_t> Write(const CompiledModel& model,
                              const std::string& path) {
  HT_ASSIGN_OR_RETURN(const std::string bytes, SerializeCompiledModel(model));
  if (!path.empty()) HT_RETURN_IF_ERROR(WriteOutput(path, bytes));
  return static_cast<int64_t>(bytes.size());
}

// What is freed is soon wanted again: giving it back to the system, and asking
// for little at a time, is a twentieth of a large model's compile.
void KeepMemory() {
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 16 << 20);
}

absl::Status Compile(const CompileFlags& flags, int* exit_code) {
  KeepMemory();
  HT_ASSIGN_OR_RETURN(CompiledModel compiled,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  // The process ends with the verb, sooner if a large model is not taken apart.
  static CompiledModel* kept = nullptr;
  kept = new CompiledModel(std::move(compiled));
  HT_ASSIGN_OR_RETURN(const int64_t size, Write(*kept, flags.out));
  HT_ASSIGN_OR_RETURN(const ModelFacts facts, FactsOf(*kept));
  const std::string text = flags.json ? CompileJson(facts, flags.out, size)
                                      : CompileText(facts, flags.out, size);
  ShowAnswer(text, flags.json);
  *exit_code = ShowFailures(flags.fail_on, facts);
  return absl::OkStatus();
}

}  // namespace

void AddCompile(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<CompileFlags>();
  Verb verb = app.AddVerb(
      "compile", "a program graph to a compiled model",
      "examples:\n"
      "  halftone compile models/mnist_convnet.pbtxt \\\n"
      "      --strategy models/mnist_o1.pbtxt -o mnist.htc\n"
      "  halftone compile mnist.htc --black matmul -o b.htc\n\n"
      "Inserts casts, loss scaling, the backward graph, all-reduces and the\n"
      "update, and reports them. A .htc is compiled again from its source.");
  AddModelFlags(verb, &flags->model);
  verb.AddOption("-o,--out", &flags->out, "where the compiled model goes")
      .Writes(/*anew=*/".htc");
  AddFailOnFlag(verb, &flags->fail_on);
  verb.AddSwitch("--json", &flags->json, "the report as JSON");
  verb.SetRun([flags, outcome] {
    outcome->status = Compile(*flags, &outcome->exit_code);
  });
}

}  // namespace tools
}  // namespace halftone

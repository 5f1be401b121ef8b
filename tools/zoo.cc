// halftone zoo: models that Halftone can write out.
#include "graph/io/zoo.h"

#include <cstdio>
#include <memory>

#include "graph/base/error.h"
#include "graph/base/file.h"
#include "tools/common/flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

absl::Status Zoo(const std::string& name, const std::string& out) {
  std::string text;
  if (name.empty()) {
    for (const std::string& known : ZooNames()) text += known + "\n";
  } else {
    HT_ASSIGN_OR_RETURN(const proto::Model model, ZooModel(name));
    text = PrintModel(model);
  }
  if (!out.empty()) return WriteFileAtomically(out, text);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddZoo(CLI::App& app, Outcome* outcome) {
  auto name = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  CLI::App* verb =
      AddVerb(app, "zoo", "write a known model's graph",
              "examples:\n"
              "  halftone zoo\n"
              "  halftone zoo resnet50 -o resnet50.pbtxt\n\n"
              "Lists the models, one per line, or writes one as .pbtxt.");
  verb->add_option("name", *name, "a model; none: list them");
  verb->add_option("-o,--out", *out, "file; default: stdout");
  verb->callback([name, out, outcome] { outcome->status = Zoo(*name, *out); });
}

}  // namespace tools
}  // namespace halftone

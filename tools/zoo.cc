// halftone zoo: models that Halftone can write out.
#include "graph/zoo/zoo.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>

#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "graph/io/model_printer.h"
#include "nlohmann/json.hpp"
#include "tools/common/command_line.h"
#include "tools/common/json_text.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct ZooFlags {
  std::string name, out;
  ZooOptions options;
  bool json = false;
};

using Json = nlohmann::ordered_json;

Json ToJson(const proto::Model& model) {
  int64_t values = 0;
  for (const proto::Parameter& param : model.param()) {
    values += std::accumulate(param.dims().begin(), param.dims().end(),
                              int64_t{1}, std::multiplies<int64_t>());
  }
  return {{"name", model.name()},
          {"ops", model.op_size()},
          {"parameters", values},
          {"tensors", model.param_size()},
          {"options", ZooOptionNames(model.name())},
          {"strategy", ZooStrategy(model.name())}};
}

absl::StatusOr<std::string> ListText(bool json) {
  std::string text;
  Json object = {{"schema", 1}, {"models", Json::array()}};
  for (const std::string& name : ZooNames()) {
    text += name + "\n";
    HT_ASSIGN_OR_RETURN(const proto::Model model, ZooModel(name));
    object["models"].push_back(ToJson(model));
  }
  return json ? JsonText(object) : text;
}

absl::Status Zoo(const ZooFlags& flags) {
  HT_ASSIGN_OR_RETURN(std::string shown, ListText(flags.json));
  std::string written = shown;
  if (!flags.name.empty()) {
    HT_ASSIGN_OR_RETURN(const proto::Model model,
                        ZooModel(flags.name, flags.options));
    shown = written = PrintModel(model);
    if (flags.json) {
      Json object = {{"schema", 1}};
      object.update(ToJson(model));
      object["path"] = flags.out.empty() ? Json() : Json(flags.out);
      shown = JsonText(object);
    }
  }
  if (!flags.out.empty()) {
    HT_RETURN_IF_ERROR(WriteOutput(flags.out, written));
    if (!flags.json || flags.name.empty()) return absl::OkStatus();
  }
  Show(shown, stdout);
  return absl::OkStatus();
}

}  // namespace

void AddZoo(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ZooFlags>();
  Verb verb = app.AddVerb(
      "zoo", "write a known model's graph",
      "examples:\n"
      "  halftone zoo\n"
      "  halftone zoo resnet50 -o resnet50.pbtxt\n"
      "  halftone zoo resnet18 --image-size 64 --classes 10\n"
      "  halftone zoo vgg16 --json\n\n"
      "Lists the models, one per line, or writes one as .pbtxt, with its\n"
      "published sizes unless others are given; --json says which it takes.");
  verb.AddOption("name", &flags->name, "a model; none: list them");
  verb.AddOption("-o,--out", &flags->out, "file; default: stdout");
  ZooOptions* options = &flags->options;
  verb.AddOption("--image-size", &options->image_size,
                 "pixels: height and width");
  verb.AddOption("--classes", &options->classes, "of the classifier");
  verb.AddOption("--layers", &options->layers, "blocks of a transformer");
  verb.AddOption("--width", &options->width,
                 "base channels, or elements of a hidden state");
  verb.AddOption("--sequence", &options->sequence, "tokens of a sample");
  verb.AddOption("--head", &options->head,
                 "of BERT: classification (default) | pretraining");
  verb.AddOption("--norm", &options->norm,
                 "of a U-Net: batch (default) | sync | group, of 8 groups, or\n"
                 "the most of 4, 2 and 1 that divide a norm's channels");
  verb.AddSwitch("--json", &flags->json, "sizes as one JSON object instead");
  verb.SetRun([flags, outcome] { outcome->status = Zoo(*flags); });
}

}  // namespace tools
}  // namespace halftone

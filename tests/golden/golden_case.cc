#include "tests/golden/golden_case.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/strategy/fields.h"
#include "graph/text/text.h"
#include "passes/named_passes.h"

namespace halftone {
namespace {

using passes::Override;

constexpr absl::string_view kExpect = "# ---- expect\n";

// Short keys of `# options:`; any path of a strategy does, too.
constexpr std::pair<absl::string_view, absl::string_view> kKeys[] = {
    {"level", "amp.level"},
    {"rule", "amp.precision_rule"},
    {"low", "amp.dtype"},
    {"white", "amp.custom_white_list"},
    {"black", "amp.custom_black_list"},
    {"black_var", "amp.custom_black_varnames"},
    {"white_op", "amp.custom_white_opnames"},
    {"black_op", "amp.custom_black_opnames"},
    {"op_lists", "amp.op_lists"},
    {"master_weights", "amp.master_weights"},
    {"keep_batchnorm_fp32", "amp.keep_batchnorm_fp32"},
    {"scaler", "amp.scaler"},
    {"loss_scale", "amp.loss_scaling.init_loss_scaling"},
    {"dynamic", "amp.loss_scaling.use_dynamic_loss_scaling"},
    {"sync_batch_norm", "dist.sync_batch_norm"},
    {"bucket_mb", "dist.fuse_grad_size_in_MB"},
    {"first_bucket_mb", "dist.first_bucket_size_in_MB"},
    {"fuse", "dist.fuse_all_reduce_ops"},
    {"gradient_scale", "dist.gradient_scale"},
};

bool IsList(absl::string_view path) {
  const StrategyField* const field = FindStrategyField(path);
  return field != nullptr && field->descriptor->is_repeated();
}

absl::Status AddOption(absl::string_view key, absl::string_view value,
                       GoldenCase* golden) {
  const auto list = [&]() -> std::vector<std::string> {
    return absl::StrSplit(value, ',', absl::SkipEmpty());
  };
  if (key == "target") {
    golden->target.name = std::string(value);
  } else if (key == "patterns") {
    golden->target.patterns = list();
  } else if (key == "without") {  // key prefixes, separated by ;
    golden->target.without = absl::StrSplit(value, ';');
  } else if (key == "fetch") {
    golden->fetch = list();
  } else if (key == "outputs") {
    golden->outputs = list();
  } else {
    std::string path(key);
    for (const auto& [name, full] : kKeys) {
      if (key == name) path = std::string(full);
    }
    if (!absl::StrContains(path, '.')) {
      return ModelError("unknown option ", key);
    }
    if (!IsList(path)) {
      golden->overrides.push_back({path, std::string(value), "--set"});
      return absl::OkStatus();
    }
    for (const std::string& member : list()) {
      golden->overrides.push_back({path, member, "--set"});
    }
  }
  return absl::OkStatus();
}

absl::Status ParseHeader(absl::string_view line, GoldenCase* golden) {
  for (absl::string_view message : {"optimizer", "lr"}) {
    if (absl::ConsumePrefix(&line, absl::StrCat("# ", message, ":"))) {
      golden->overrides.push_back(
          {std::string(message), std::string(line), "--set"});
      return absl::OkStatus();
    }
  }
  if (!absl::ConsumePrefix(&line, "# options:")) return absl::OkStatus();
  for (absl::string_view option :
       absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(option, absl::MaxSplits('=', 1));
    HT_RETURN_IF_ERROR(AddOption(pair.first, pair.second, golden));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Run(const GoldenCase& golden,
                                absl::string_view pass,
                                absl::string_view file) {
  HT_ASSIGN_OR_RETURN(
      const passes::Options options,
      passes::ResolveOptions(passes::StrategyFile{}, golden.overrides));
  const passes::KernelSet kernels = passes::AllKernels(golden.target);
  HT_ASSIGN_OR_RETURN(std::unique_ptr<Program> program,
                      Parse(golden.head, file));
  passes::PassPipeline::Settings settings;
  settings.verify_each = true;
  HT_ASSIGN_OR_RETURN(
      const std::vector<passes::PassRun> runs,
      passes::RunNamed({std::string(pass)},
                       {options, kernels, golden.fetch, golden.outputs},
                       std::move(settings), *program));
  return runs[0].changed ? Print(*program) : std::string("unchanged\n");
}

}  // namespace

absl::StatusOr<GoldenCase> ParseGoldenCase(absl::string_view content,
                                           absl::string_view file) {
  GoldenCase golden;
  const size_t expect = content.find(kExpect);
  if (expect == absl::string_view::npos) {
    return ModelError(file, ": expected a line \"# ---- expect\"");
  }
  golden.head = std::string(content.substr(0, expect));
  golden.expect = std::string(content.substr(expect + kExpect.size()));
  int number = 0;
  for (absl::string_view line : absl::StrSplit(golden.head, '\n')) {
    ++number;
    if (!absl::StartsWith(line, "#")) break;
    const absl::Status status = ParseHeader(line, &golden);
    if (!status.ok()) return Annotate(status, absl::StrCat(file, ":", number));
  }
  return golden;
}

std::string RunGoldenCase(const GoldenCase& golden, absl::string_view pass,
                          absl::string_view file) {
  absl::StatusOr<std::string> result = Run(golden, pass, file);
  return result.ok() ? *std::move(result)
                     : absl::StrCat("error: ", result.status().message(), "\n");
}

}  // namespace halftone

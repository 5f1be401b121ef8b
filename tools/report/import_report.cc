#include "tools/report/import_report.h"

#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/shell_word.h"
#include "graph/base/text.h"
#include "nlohmann/json.hpp"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

constexpr size_t kMostListed = 8;

int64_t ValuesOf(
    const google::protobuf::RepeatedPtrField<proto::Parameter>& all) {
  int64_t values = 0;
  for (const proto::Parameter& one : all) {
    values += std::accumulate(one.dims().begin(), one.dims().end(), int64_t{1},
                              std::multiplies<int64_t>());
  }
  return values;
}

std::string LabelLine(const std::string& label, const std::string& text) {
  return absl::StrCat(label, std::string(12 - label.size(), ' '), text, "\n");
}

// "backward 12, optimizer 6".
std::string Counts(const std::map<std::string, int64_t>& counts) {
  std::vector<std::string> words;
  for (const auto& [name, count] : counts) {
    words.push_back(absl::StrCat(name, " ", WithCommas(count)));
  }
  return absl::StrJoin(words, ", ");
}

std::string FeedText(const proto::Feed& feed) {
  std::vector<std::string> dims;
  for (const int64_t dim : feed.dims()) {
    dims.push_back(dim == -1 ? "B" : absl::StrCat(dim));
  }
  return absl::StrCat(feed.name(), " ",
                      absl::AsciiStrToLower(proto::DataType_Name(feed.dtype())),
                      "[", absl::StrJoin(dims, ","), "]");
}

std::string OpsText(const ImportedModel& imported) {
  const int ops = imported.model.model->op_size();
  const std::string kept = absl::StrCat(WithCommas(ops), " forward");
  if (imported.left_out.empty()) return kept;
  return absl::StrCat(kept, "; left out: ", Counts(imported.left_out));
}

std::string FeedsText(const ImportedModel& imported) {
  std::vector<std::string> feeds;
  for (const proto::Feed& feed : imported.model.model->feed()) {
    feeds.push_back(FeedText(feed));
  }
  std::string text = absl::StrJoin(feeds, ", ");
  const auto& all = imported.model.model->feed();
  const bool closed =
      std::all_of(all.begin(), all.end(), [](const proto::Feed& feed) {
        return feed.dims_size() > 0 && feed.dims(0) != -1;
      });
  if (closed && !all.empty()) {
    const auto& dims = all[0].dims();
    absl::StrAppend(
        &text, "; --dims ", all[0].name(), "=-1", dims.size() > 1 ? "," : "",
        absl::StrJoin(dims.begin() + 1, dims.end(), ","), " opens the batch");
  }
  if (!imported.unread_feeds.empty()) {
    absl::StrAppend(&text, "; left out, for no op reads it: ",
                    runtime::JoinFew(imported.unread_feeds, kMostListed));
  }
  return text;
}

// Those that no training of the model changes.
std::vector<std::string> Frozen(const proto::Model& model) {
  std::vector<std::string> frozen;
  for (const proto::Parameter& param : model.param()) {
    if (!param.trainable()) frozen.push_back(param.name());
  }
  return frozen;
}

std::string LossText(const ImportedModel& imported) {
  const proto::Model& model = *imported.model.model;
  if (model.has_loss()) {
    const proto::Loss& loss = model.loss();
    std::string over = absl::StrCat("a mean over ", loss.mean_over());
    if (loss.mean_over() == loss.var()) over = "taken as one sample per rank";
    if (loss.has_mask()) absl::StrAppend(&over, " under ", loss.mask());
    if (loss.denominator_size() > 0) {
      absl::StrAppend(&over, ", denominators ",
                      absl::StrJoin(loss.denominator(), ", "));
    }
    return absl::StrCat(loss.var(), " (", imported.loss_from, "), ", over);
  }
  std::string text = absl::StrCat("none: ", imported.no_loss,
                                  "; compiles for evaluation alone");
  if (!imported.loss_candidates.empty()) {
    absl::StrAppend(&text, "; may be meant: --loss ",
                    runtime::JoinFew(imported.loss_candidates, 3));
  }
  return text;
}

std::string InitText(const ImportedModel& imported, const ImportFiles& files) {
  std::vector<std::string> parts;
  if (!imported.startup_inits.empty()) {
    parts.push_back(
        absl::StrCat(files.startup, ": ", Counts(imported.startup_inits)));
  }
  if (!imported.default_inits.empty()) {
    parts.push_back(absl::StrCat(
        "Paddle's defaults", files.startup.empty() ? " (no --startup): " : ": ",
        Counts(imported.default_inits)));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace

std::string ImportText(const ImportedModel& imported,
                       const ImportFiles& files) {
  const proto::Model& model = *imported.model.model;
  std::string text =
      LabelLine("read", absl::StrCat(files.model, ": ", imported.source));
  absl::StrAppend(&text, LabelLine("ops", OpsText(imported)),
                  LabelLine("feeds", FeedsText(imported)));
  absl::StrAppend(
      &text,
      LabelLine(
          "parameters",
          absl::StrCat(WithCommas(model.param_size()), " tensors, ",
                       WithCommas(ValuesOf(model.param())), " values",
                       model.stat_size() == 0
                           ? ""
                           : absl::StrCat("; ", WithCommas(model.stat_size()),
                                          " running statistics, which "
                                          "training updates"))));
  const std::vector<std::string> frozen = Frozen(model);
  if (model.has_loss() && !frozen.empty()) {
    text += LabelLine("frozen",
                      absl::StrCat(WithCommas(frozen.size()),
                                   " of them, which the source does not "
                                   "train: ",
                                   runtime::JoinFew(frozen, kMostListed)));
  }
  const std::string inits = InitText(imported, files);
  if (!inits.empty()) text += LabelLine("initial", inits);
  text += LabelLine("loss", LossText(imported));
  std::vector<std::string> metrics;
  for (const proto::Metric& metric : model.metric()) {
    metrics.push_back(metric.name());
  }
  if (!metrics.empty())
    text += LabelLine("metrics", absl::StrJoin(metrics, ", "));
  const std::vector<std::string> outputs(model.output().begin(),
                                         model.output().end());
  if (!outputs.empty())
    text += LabelLine("outputs", runtime::JoinFew(outputs, kMostListed));
  text += LabelLine(
      "weights",
      files.weights.empty()
          ? absl::StrCat("none: ", files.no_weights)
          : absl::StrCat(files.weights, ": ", WithCommas(files.tensors),
                         " tensors, ", WithCommas(files.weight_bytes),
                         " B of data  halftone run --init"));
  if (imported.constants_of_file > 0) {
    text += LabelLine(
        "constants", absl::StrCat(WithCommas(imported.constants_of_file),
                                  " tensors of the graph are among the weights "
                                  "alone; without --init they are 0"));
  }
  for (const std::string& note : imported.notes) {
    text += LabelLine("note", absl::StrCat(files.model, ": ", note));
  }
  return absl::StrCat(text, files.out, ": ", HumanBytes(files.bytes),
                      "  halftone compile ", ShellWord(files.out), "\n");
}

std::string ImportJson(const ImportedModel& imported,
                       const ImportFiles& files) {
  using Json = nlohmann::ordered_json;
  const proto::Model& model = *imported.model.model;
  const auto or_null = [](const std::string& word) {
    return word.empty() ? Json() : Json(word);
  };
  Json json = {
      {"schema", 1},
      {"path", files.out},
      {"model", model.name()},
      {"from", imported.from},
      {"ops_read", imported.ops},
      {"ops", model.op_size()},
      {"left_out", Json::object()},
      {"feeds", Json::array()},
      {"params", model.param_size()},
      {"parameters", ValuesOf(model.param())},
      {"frozen", Frozen(model)},
      {"stats", model.stat_size()},
      {"loss", or_null(model.loss().var())},
      {"mean_over", or_null(model.loss().mean_over())},
      {"mask", or_null(model.loss().mask())},
      {"denominators",
       std::vector<std::string>(model.loss().denominator().begin(),
                                model.loss().denominator().end())},
      {"metrics", Json::array()},
      {"outputs", Json::array()},
      {"inits", {{"startup", Json::object()}, {"defaults", Json::object()}}},
      {"weights", or_null(files.weights)},
      {"tensors", files.tensors},
      {"notes", imported.notes}};
  for (const auto& [role, count] : imported.left_out) {
    json["left_out"][role] = count;
  }
  for (const proto::Feed& feed : model.feed()) {
    json["feeds"].push_back(feed.name());
  }
  for (const proto::Metric& metric : model.metric()) {
    json["metrics"].push_back(metric.name());
  }
  for (const std::string& output : model.output()) {
    json["outputs"].push_back(output);
  }
  for (const auto& [kind, count] : imported.startup_inits) {
    json["inits"]["startup"][kind] = count;
  }
  for (const auto& [kind, count] : imported.default_inits) {
    json["inits"]["defaults"][kind] = count;
  }
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone

#include "graph/io/model_printer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/text.h"

namespace halftone {
namespace {

constexpr size_t kColumns = 130;

std::string Quote(absl::string_view value) {
  return absl::StrCat("\"", absl::CEscape(value), "\"");
}

template <typename Numbers>
std::string List(const Numbers& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

std::string Number(double value) { return ExactDouble(value); }

// `name: "x"` and the like, where the field is set.
std::string FieldText(bool has, absl::string_view name,
                      absl::string_view value) {
  return has ? absl::StrCat(" ", name, ": ", value) : "";
}

std::string InitText(const proto::Init& init) {
  switch (init.kind_case()) {
    case proto::Init::kConstant:
      return absl::StrCat("constant: ", Number(init.constant()));
    case proto::Init::kUniform: {
      const proto::Uniform& u = init.uniform();
      return absl::StrCat(
          "uniform {", FieldText(u.has_bound(), "bound", Number(u.bound())),
          FieldText(u.has_low(), "low", Number(u.low())),
          FieldText(u.has_high(), "high", Number(u.high())), " }");
    }
    case proto::Init::kNormal:
    case proto::Init::kTruncatedNormal: {
      const bool truncated = init.has_truncated_normal();
      const proto::Normal& n =
          truncated ? init.truncated_normal() : init.normal();
      return absl::StrCat(truncated ? "truncated_normal {" : "normal {",
                          FieldText(n.has_mean(), "mean", Number(n.mean())),
                          FieldText(n.has_std(), "std", Number(n.std())), " }");
    }
    case proto::Init::kXavierUniform:
    case proto::Init::kXavierNormal: {
      const bool uniform = init.has_xavier_uniform();
      const proto::Xavier& x =
          uniform ? init.xavier_uniform() : init.xavier_normal();
      return absl::StrCat(uniform ? "xavier_uniform {" : "xavier_normal {",
                          FieldText(x.has_gain(), "gain", Number(x.gain())),
                          " }");
    }
    case proto::Init::kKaimingUniform:
    case proto::Init::kKaimingNormal: {
      const bool uniform = init.has_kaiming_uniform();
      const proto::Kaiming& k =
          uniform ? init.kaiming_uniform() : init.kaiming_normal();
      return absl::StrCat(uniform ? "kaiming_uniform {" : "kaiming_normal {",
                          FieldText(k.has_a(), "a", Number(k.a())), " }");
    }
    case proto::Init::KIND_NOT_SET:
      break;
  }
  return "";
}

std::string FeedText(const proto::Feed& feed) {
  return absl::StrCat(
      "feed {", FieldText(feed.has_name(), "name", Quote(feed.name())),
      FieldText(feed.has_dtype(), "dtype", proto::DataType_Name(feed.dtype())),
      FieldText(feed.dims_size() > 0, "dims", List(feed.dims())), " }");
}

std::string ParameterText(absl::string_view kind,
                          const proto::Parameter& param) {
  return absl::StrCat(
      kind, " {", FieldText(param.has_name(), "name", Quote(param.name())),
      FieldText(param.has_dtype(), "dtype",
                proto::DataType_Name(param.dtype())),
      FieldText(param.dims_size() > 0, "dims", List(param.dims())),
      param.has_init() ? absl::StrCat(" init { ", InitText(param.init()), " }")
                       : "",
      FieldText(param.has_trainable(), "trainable",
                param.trainable() ? "true" : "false"),
      " }");
}

std::string SlotText(absl::string_view kind, const proto::SlotVars& slot) {
  std::string text = absl::StrCat(
      kind, " {", FieldText(slot.has_slot(), "slot", Quote(slot.slot())));
  for (const std::string& var : slot.var()) {
    absl::StrAppend(&text, " var: ", Quote(var));
  }
  return text + " }";
}

std::string AttrText(const proto::Attribute& attr) {
  std::vector<std::string> floats;
  for (double value : attr.floats()) floats.push_back(Number(value));
  std::string text = absl::StrCat(
      "attr {", FieldText(attr.has_name(), "name", Quote(attr.name())),
      FieldText(attr.has_i(), "i", absl::StrCat(attr.i())),
      FieldText(attr.has_b(), "b", attr.b() ? "true" : "false"),
      FieldText(attr.has_f(), "f", Number(attr.f())),
      FieldText(attr.has_s(), "s", Quote(attr.s())),
      FieldText(attr.ints_size() > 0, "ints", List(attr.ints())),
      FieldText(!floats.empty(), "floats", List(floats)));
  for (const std::string& word : attr.strings()) {
    absl::StrAppend(&text, " strings: ", Quote(word));
  }
  return text + " }";
}

// Lines of one op, parts of it kept whole.
std::string OpText(const proto::OpNode& op) {
  std::vector<std::string> parts;
  parts.push_back(
      absl::StrCat("op {", FieldText(op.has_type(), "type", Quote(op.type())),
                   FieldText(op.has_name(), "name", Quote(op.name()))));
  for (const proto::SlotVars& in : op.in()) parts.push_back(SlotText("in", in));
  for (const proto::SlotVars& out : op.out()) {
    parts.push_back(SlotText("out", out));
  }
  for (const proto::Attribute& attr : op.attr()) {
    parts.push_back(AttrText(attr));
  }
  parts.back() += " }";
  std::string text, line;
  for (const std::string& part : parts) {
    if (!line.empty() && line.size() + 1 + part.size() > kColumns) {
      absl::StrAppend(&text, line, "\n");
      line = absl::StrCat("     ", part);
    } else {
      absl::StrAppend(&line, line.empty() ? "" : " ", part);
    }
  }
  return absl::StrCat(text, line, "\n");
}

class ModelPrinter {
 public:
  explicit ModelPrinter(const proto::Model& model) : model_(model) {}
  std::string Run();

 private:
  // Appends to the line that is open if it fits and belongs to `group`.
  void Pack(const std::string& text, absl::string_view group);
  void EndLine();
  void FindNeeds();
  // All parameters and statistics below these counts.
  void PrintParameters(int params, int stats);
  void PrintOps();
  void PrintEnd();

  struct Needs {
    int params = 0, stats = 0;  // 1 + the highest index
  };

  const proto::Model& model_;
  std::vector<Needs> needs_;  // by op
  int params_ = 0, stats_ = 0;
  std::string out_, line_, group_;
};

void ModelPrinter::Pack(const std::string& text, absl::string_view group) {
  if (!line_.empty() &&
      (group != group_ || line_.size() + 2 + text.size() > kColumns)) {
    EndLine();
  }
  absl::StrAppend(&line_, line_.empty() ? "" : "  ", text);
  group_ = std::string(group);
}

void ModelPrinter::EndLine() {
  if (!line_.empty()) absl::StrAppend(&out_, line_, "\n");
  line_.clear();
}

void ModelPrinter::FindNeeds() {
  absl::flat_hash_map<absl::string_view, Needs> by_name;
  for (int i = 0; i < model_.param_size(); ++i) {
    by_name[model_.param(i).name()].params = i + 1;
  }
  for (int i = 0; i < model_.stat_size(); ++i) {
    by_name[model_.stat(i).name()].stats = i + 1;
  }
  for (const proto::OpNode& op : model_.op()) {
    Needs needs;
    for (const proto::SlotVars& in : op.in()) {
      for (const std::string& var : in.var()) {
        const auto it = by_name.find(var);
        if (it == by_name.end()) continue;
        needs.params = std::max(needs.params, it->second.params);
        needs.stats = std::max(needs.stats, it->second.stats);
      }
    }
    needs_.push_back(needs);
  }
}

void ModelPrinter::PrintParameters(int params, int stats) {
  // One line for those of one layer: "conv1" of "conv1.w".
  const auto layer = [](absl::string_view kind, const std::string& name) {
    return absl::StrCat(kind, name.substr(0, name.rfind('.')));
  };
  for (; params_ < params; ++params_) {
    const proto::Parameter& param = model_.param(params_);
    Pack(ParameterText("param", param), layer("param", param.name()));
  }
  for (; stats_ < stats; ++stats_) {
    const proto::Parameter& stat = model_.stat(stats_);
    Pack(ParameterText("stat", stat), layer("stat", stat.name()));
  }
  EndLine();
}

// In groups: ops that need no new parameters, then ops that do; the group's
// parameters stand before it.
void ModelPrinter::PrintOps() {
  const auto is_new = [this](int op) {
    return needs_[op].params > params_ || needs_[op].stats > stats_;
  };
  for (int begin = 0; begin < model_.op_size();) {
    int end = begin;
    while (end < model_.op_size() && !is_new(end)) ++end;
    Needs needs;
    for (; end < model_.op_size() && is_new(end); ++end) {
      needs.params = std::max(needs.params, needs_[end].params);
      needs.stats = std::max(needs.stats, needs_[end].stats);
    }
    PrintParameters(std::max(needs.params, params_),
                    std::max(needs.stats, stats_));
    for (; begin < end; ++begin) out_ += OpText(model_.op(begin));
  }
  PrintParameters(model_.param_size(), model_.stat_size());
}

void ModelPrinter::PrintEnd() {
  if (model_.has_loss()) {
    const proto::Loss& loss = model_.loss();
    std::string text = absl::StrCat(
        "loss {", FieldText(loss.has_var(), "var", Quote(loss.var())),
        FieldText(loss.has_mean_over(), "mean_over", Quote(loss.mean_over())),
        FieldText(loss.has_mask(), "mask", Quote(loss.mask())));
    for (const std::string& value : loss.denominator()) {
      absl::StrAppend(&text, FieldText(true, "denominator", Quote(value)));
    }
    for (const proto::LossPart& part : loss.part()) {
      absl::StrAppend(
          &text, " part {", FieldText(part.has_var(), "var", Quote(part.var())),
          FieldText(part.has_weight(), "weight", Number(part.weight())), " }");
    }
    Pack(text + " }", "loss");
  }
  for (const proto::Metric& metric : model_.metric()) {
    Pack(absl::StrCat(
             "metric {",
             FieldText(metric.has_name(), "name", Quote(metric.name())),
             FieldText(metric.has_var(), "var", Quote(metric.var())),
             FieldText(metric.has_over(), "over", Quote(metric.over())), " }"),
         "end");
  }
  for (const std::string& output : model_.output()) {
    Pack(absl::StrCat("output: ", Quote(output)), "end");
  }
  EndLine();
}

std::string ModelPrinter::Run() {
  if (model_.has_name()) {
    Pack(absl::StrCat("name: ", Quote(model_.name())), "name");
  }
  if (model_.has_format()) {
    Pack(absl::StrCat("format: ", model_.format()), "name");
  }
  for (const proto::Feed& feed : model_.feed()) Pack(FeedText(feed), "feed");
  EndLine();
  FindNeeds();
  PrintOps();
  PrintEnd();
  return std::move(out_);
}

}  // namespace

std::string PrintModel(const proto::Model& model) {
  return ModelPrinter(model).Run();
}

}  // namespace halftone

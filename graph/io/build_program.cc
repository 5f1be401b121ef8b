// BuildProgram of model_reader.h.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/error_list.h"
#include "graph/base/text.h"
#include "graph/io/model_graph.h"
#include "graph/io/model_reader.h"
#include "graph/io/model_values.h"
#include "graph/ir/well_known.h"
#include "graph/schema/denominators.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/place.h"
#include "graph/verify/limits.h"
#include "graph/verify/verify.h"

namespace halftone {
namespace {

// " name", as far as it goes into a line; "" for none.
std::string Called(absl::string_view name) {
  constexpr size_t kMost = 60;
  return absl::StrCat(name.empty() ? "" : " ", name.substr(0, kMost),
                      name.size() > kMost ? "..." : "");
}

int LineOf(const std::vector<int>& lines, int i) {
  return i < static_cast<int>(lines.size()) ? lines[i] : 0;
}

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const ModelFile& file)
      : file_(file),
        model_(*file.model),
        program_(std::make_unique<Program>()),
        train_(program_->AddEntry(kTrainEntry)),
        block_(train_.block()) {}

  absl::StatusOr<std::unique_ptr<Program>> Run();

 private:
  template <typename... Parts>
  absl::Status Error(int line, const Parts&... parts) const {
    return ModelError(PlaceOf(*program_, line), parts...);
  }
  absl::Status CheckNew(absl::string_view what, const std::string& name,
                        int line) const;
  absl::Status AddFeed(const proto::Feed& feed, int line);
  absl::Status AddParameter(const proto::Parameter& param, CellKind kind,
                            int line);
  void AddInputs();
  void AddOps();
  absl::Status AddOp(int index);
  absl::Status AddAttrs(const proto::OpNode& node, const OpSchema& schema,
                        OpBuilder& builder) const;
  // That running statistics are declared as such.
  absl::Status CheckStatistics(const Op& op) const;
  absl::Status SetLoss();
  absl::Status CheckLossValue(int line, absl::string_view what,
                              const std::string& name) const;
  // The loss's value as the weighted sum of its parts.
  absl::Status AddLossParts(int line);
  absl::Status AddLossPart(int line, const proto::LossPart& part,
                           std::vector<ValueId>* terms);
  absl::Status SetDenominators(int line, ValueId var);
  absl::Status SetMetric(const proto::Metric& metric, int line);
  void SetMetrics();
  void SetOutputs();
  // The value of that name, for the loss and the like.
  absl::StatusOr<ValueId> Find(int line, absl::string_view what,
                               const std::string& name) const;
  absl::Status ExpectScalar(int line, absl::string_view what,
                            ValueId value) const;
  std::string Print(ValueId value) const {
    return ToString(block_.type(value), program_->symbols());
  }

  const ModelFile& file_;
  const proto::Model& model_;
  std::unique_ptr<Program> program_;
  Entry& train_;
  Block& block_;
  // What is wrong, and the names that are not there for it.
  ErrorList errors_;
  absl::flat_hash_set<std::string> lost_;
  absl::flat_hash_set<absl::string_view> metric_names_;
};

absl::StatusOr<std::unique_ptr<Program>> ProgramBuilder::Run() {
  program_->name = model_.name();
  program_->file = file_.file;
  if (!model_.name().empty() && !BadName(model_.name()).empty()) {
    return Error(0, "the model's name", Called(model_.name()), " ",
                 BadName(model_.name()));
  }
  AddInputs();
  if (model_.op_size() == 0) {
    errors_.Add(
        Error(0, "expected at least one op, found none; add op { ... }"));
  }
  AddOps();
  errors_.Add(SetLoss());
  SetMetrics();
  SetOutputs();
  HT_RETURN_IF_ERROR(errors_.ToStatus());
  if (!model_.has_loss() && model_.metric_size() + model_.output_size() == 0) {
    return Error(0, "the model computes nothing: expected a loss, metric or ",
                 "output; add output: \"NAME\"");
  }
  VerifyOptions options;
  options.phase = Phase::kSource;
  HT_RETURN_IF_ERROR(Verify(*program_, options));
  return std::move(program_);
}

// ---- Feeds, parameters, statistics.

absl::Status ProgramBuilder::CheckNew(absl::string_view what,
                                      const std::string& name, int line) const {
  if (const std::string wrong = BadName(name); !wrong.empty()) {
    return Error(line, what, Called(name), ": its name ", wrong,
                 "; give it another");
  }
  if (name[0] == '@') {
    return Error(line, what, " ", name, ": names that begin with @ are ",
                 "Halftone's own; rename it");
  }
  if (block_.FindValue(name).valid() || program_->FindCell(name).valid()) {
    return Error(line, what, " ", name, ": two definitions of ", name,
                 "; rename one");
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::AddFeed(const proto::Feed& feed, int line) {
  HT_RETURN_IF_ERROR(CheckNew("feed", feed.name(), line));
  const auto error = [&](absl::string_view message) {
    return Error(line, "feed ", feed.name(), ": ", message);
  };
  TensorType type;
  type.dtype = FromProto(feed.dtype());
  if (type.dtype == DType::kInvalid) return error("expected a dtype");
  for (int i = 0; i < feed.dims_size(); ++i) {
    const int64_t dim = feed.dims(i);
    if (dim == -1 && i == 0) {
      type.dims.push_back(Dim::Symbol(program_->Symbol("B")));
    } else if (dim >= 1) {
      type.dims.emplace_back(dim);
    } else {
      return error(absl::StrCat("dims: expected 1 or more (or -1, the batch, ",
                                "first), found ", dim));
    }
  }
  if (const std::string wrong = BadDims(type); !wrong.empty()) {
    return error(absl::StrCat("dims: ", wrong));
  }
  block_.AddFeed(feed.name(), type);
  return absl::OkStatus();
}

absl::Status ProgramBuilder::AddParameter(const proto::Parameter& param,
                                          CellKind kind, int line) {
  const bool statistic = kind == CellKind::kStatistic;
  const absl::string_view what = statistic ? "stat" : "param";
  HT_RETURN_IF_ERROR(CheckNew(what, param.name(), line));
  Cell cell;
  cell.name = param.name();
  cell.kind = kind;
  cell.trainable = !statistic && param.trainable();
  cell.line = line;
  absl::Status status = SetCellType(param, statistic, &cell);
  if (status.ok()) status = SetInitializer(param, &cell);
  if (!status.ok()) {
    return Annotate(status, absl::StrCat(PlaceOf(*program_, line), what, " ",
                                         param.name()));
  }
  program_->AddCell(std::move(cell));
  return absl::OkStatus();
}

void ProgramBuilder::AddInputs() {
  const auto keep = [this](const absl::Status& status,
                           const std::string& name) {
    if (!errors_.Add(status)) lost_.insert(name);
  };
  for (int i = 0; i < model_.feed_size(); ++i) {
    const proto::Feed& feed = model_.feed(i);
    keep(AddFeed(feed, LineOf(file_.feed_lines, i)), feed.name());
  }
  for (int i = 0; i < model_.param_size(); ++i) {
    const proto::Parameter& param = model_.param(i);
    keep(
        AddParameter(param, CellKind::kParameter, LineOf(file_.param_lines, i)),
        param.name());
  }
  for (int i = 0; i < model_.stat_size(); ++i) {
    const proto::Parameter& stat = model_.stat(i);
    keep(AddParameter(stat, CellKind::kStatistic, LineOf(file_.stat_lines, i)),
         stat.name());
  }
}

// ---- Ops.

void ProgramBuilder::AddOps() {
  for (int index : OrderOps(file_, block_, &lost_, &errors_)) {
    if (!errors_.Add(AddOp(index))) AddResults(model_.op(index), &lost_);
  }
}

absl::Status ProgramBuilder::AddOp(int index) {
  const proto::OpNode& node = model_.op(index);
  const OpSchema& schema = *Ops().Find(node.type());  // OrderOps has looked
  OpBuilder builder(&block_, node.type());
  builder.Name(NameOf(node)).Line(LineOf(file_.op_lines, index));
  for (const proto::SlotVars& in : node.in()) {
    std::vector<ValueId> values;
    for (const std::string& var : in.var()) {
      ValueId value = block_.FindValue(var);
      if (!value.valid()) {
        const CellId cell = program_->FindCell(var);
        if (!cell.valid()) return ErrorList::Follows();
        value = block_.CellValue(cell);
      }
      values.push_back(value);
    }
    builder.In(SlotName(schema, in.slot()), values);
  }
  for (const proto::SlotVars& out : node.out()) {
    for (const std::string& var : out.var()) builder.Out(out.slot(), var);
  }
  const absl::Status attrs = AddAttrs(node, schema, builder);
  if (!attrs.ok()) {
    return AtOp(attrs, *program_, LineOf(file_.op_lines, index), NameOf(node),
                node.type());
  }
  HT_ASSIGN_OR_RETURN(const OpId id, builder.Build());
  return CheckStatistics(block_.op(id));
}

absl::Status ProgramBuilder::AddAttrs(const proto::OpNode& node,
                                      const OpSchema& schema,
                                      OpBuilder& builder) const {
  bool has_stream = schema.stream_attr() < 0;
  std::vector<bool> seen(schema.attrs().size());
  for (const proto::Attribute& attr : node.attr()) {
    const absl::string_view name = AttrName(schema, attr.name());
    const int index = schema.FindAttr(name);
    if (index < 0) {  // Build says so, with the nearest
      builder.Attr(attr.name(), false);
      break;
    }
    if (seen[index]) {
      return ModelError("attribute ", attr.name(), " is given twice");
    }
    seen[index] = true;
    HT_ASSIGN_OR_RETURN(AttrValue value, FromProto(attr));
    const auto* number = std::get_if<int64_t>(&value);
    if (name == "stream" && number != nullptr && *number == 0) continue;
    has_stream = has_stream || name == "stream";
    builder.Attr(name, std::move(value));
  }
  // Every random op draws from a stream of its own, by its name: what is
  // drawn does not depend on what else is in the model.
  if (!has_stream) {
    const uint64_t hash = StableHash(NameOf(node)) & 0x7fffffff;
    builder.Attr("stream", static_cast<int64_t>(hash | 1));
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::CheckStatistics(const Op& op) const {
  if (op.schema->to_test() != "scale_bias") return absl::OkStatus();
  for (const absl::string_view slot : {"Mean", "Variance"}) {
    const ValueId value = op.in(op.schema->FindInput(slot));
    const CellId cell = block_.value(value).cell();
    if (cell.valid() && program_->cell(cell).kind == CellKind::kStatistic) {
      continue;
    }
    return Error(op.line, block_.name(op), " (", op.schema->name(), "): slot ",
                 slot, ": expected a running statistic, found ",
                 block_.name(value), "; declare it with stat { ... }");
  }
  return absl::OkStatus();
}

// ---- Loss, metrics, outputs.

absl::StatusOr<ValueId> ProgramBuilder::Find(int line, absl::string_view what,
                                             const std::string& name) const {
  if (name.empty()) return Error(line, what, ": expected a value's name");
  const ValueId value = block_.FindValue(name);
  if (value.valid()) return value;
  if (lost_.contains(name)) return ErrorList::Follows();
  return Error(line, what, ": no value is called \"", name, "\"",
               NearestHint(name, ValueNames(block_)));
}

absl::Status ProgramBuilder::ExpectScalar(int line, absl::string_view what,
                                          ValueId value) const {
  if (block_.type(value).Elements() == Dim(1)) return absl::OkStatus();
  return Error(line, what, ": expected one element, found ", block_.name(value),
               " : ", Print(value),
               "; reduce it, for example with mean or reduce_sum");
}

absl::Status ProgramBuilder::CheckLossValue(int line, absl::string_view what,
                                            const std::string& name) const {
  HT_ASSIGN_OR_RETURN(const ValueId var, Find(line, what, name));
  if (!block_.value(var).op().valid() || !IsFloat(block_.dtype(var))) {
    return Error(line, what, ": expected a float result of an op, found ", name,
                 " : ", Print(var));
  }
  return ExpectScalar(line, what, var);
}

absl::Status ProgramBuilder::AddLossPart(int line, const proto::LossPart& part,
                                         std::vector<ValueId>* terms) {
  const std::string what = absl::StrCat("loss: part ", part.var());
  HT_RETURN_IF_ERROR(CheckLossValue(line, what, part.var()));
  if (!std::isfinite(part.weight()) || part.weight() == 0) {
    return Error(line, what, ": weight: expected a finite number other than 0",
                 ", found ", part.weight(), "; leave the part out, or name it ",
                 "in an output");
  }
  for (const LossPart& other : program_->loss.parts) {
    if (other.name == part.var()) return Error(line, what, " is given twice");
  }
  std::string term = part.var();
  if (part.weight() != 1) {
    absl::StrAppend(&term, ".weighted");
    HT_RETURN_IF_ERROR(CheckNew("loss: the weighted part", term, line));
    HT_RETURN_IF_ERROR(OpBuilder(&block_, "scale")
                           .Line(line)
                           .In("X", block_.FindValue(part.var()))
                           .Attr("scale", part.weight())
                           .Out("Out", term)
                           .Build()
                           .status());
  }
  terms->push_back(block_.FindValue(term));
  if (block_.type(terms->back()).rank() > 0) {
    HT_ASSIGN_OR_RETURN(const OpId scalar,
                        OpBuilder(&block_, "reshape")
                            .Line(line)
                            .In("X", terms->back())
                            .Attr("shape", std::vector<int64_t>{})
                            .Out("Out", absl::StrCat(term, ".scalar"))
                            .Build());
    terms->back() = block_.op(scalar).out(0);
  }
  program_->loss.parts.push_back({part.var(), term});
  return absl::OkStatus();
}

absl::Status ProgramBuilder::AddLossParts(int line) {
  const proto::Loss& loss = model_.loss();
  HT_RETURN_IF_ERROR(CheckNew("loss: the sum of its parts", loss.var(), line));
  std::vector<ValueId> terms;
  for (const proto::LossPart& part : loss.part()) {
    HT_RETURN_IF_ERROR(AddLossPart(line, part, &terms));
  }
  return OpBuilder(&block_, "sum")
      .Line(line)
      .In("X", terms)
      .Out("Out", loss.var())
      .Build()
      .status();
}

absl::Status ProgramBuilder::SetLoss() {
  if (!model_.has_loss()) return absl::OkStatus();
  const proto::Loss& loss = model_.loss();
  const int line = LineOf(file_.loss_lines, 0);
  if (loss.part_size() > 0) HT_RETURN_IF_ERROR(AddLossParts(line));
  HT_RETURN_IF_ERROR(CheckLossValue(line, "loss", loss.var()));
  const ValueId var = block_.FindValue(loss.var());
  if (loss.mean_over().empty()) {
    return Error(line, "loss: expected mean_over, the value over whose ",
                 "elements ", loss.var(), " is a mean, found nothing; add ",
                 "mean_over: \"NAME\"");
  }
  HT_RETURN_IF_ERROR(Find(line, "loss: mean_over", loss.mean_over()).status());
  if (loss.has_mask()) {
    HT_ASSIGN_OR_RETURN(const ValueId mask,
                        Find(line, "loss: mask", loss.mask()));
    if (!IsFloat(block_.dtype(mask))) {
      return Error(line, "loss: mask: expected a float value, found ",
                   loss.mask(), " : ", Print(mask), "; cast it");
    }
  }
  program_->loss.var = loss.var();
  program_->loss.mean_over = loss.mean_over();
  program_->loss.mask = loss.mask();
  return SetDenominators(line, var);
}

absl::Status ProgramBuilder::SetDenominators(int line, ValueId var) {
  const proto::Loss& loss = model_.loss();
  if (loss.denominator_size() == 0) return absl::OkStatus();
  if (loss.has_mask()) {
    return Error(line, "loss: expected mask or denominator, found both; leave ",
                 "mask out and name what its mean is divided by among the ",
                 "denominators");
  }
  const ValueId over = block_.FindValue(loss.mean_over());
  if (!CountsSamples(block_, over)) {
    return Error(line, "loss: mean_over: beside a denominator expected a ",
                 "value with as many elements for each sample, found ",
                 loss.mean_over(), " : ", Print(over));
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& name : loss.denominator()) {
    const absl::string_view what = "loss: denominator";
    HT_ASSIGN_OR_RETURN(const ValueId value, Find(line, what, name));
    if (!seen.insert(name).second) {
      return Error(line, what, " ", name, " is given twice");
    }
    const auto found = FindDenominator(block_, var, value);
    if (!found.ok()) {
      return Error(line, what, " ", found.status().message());
    }
    program_->loss.denominators.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::SetMetric(const proto::Metric& metric, int line) {
  if (const std::string wrong = BadName(metric.name()); !wrong.empty()) {
    return Error(line, "metric", Called(metric.name()), ": its name ", wrong);
  }
  const std::string what = absl::StrCat("metric ", metric.name());
  if (metric.name() == "loss") {
    return Error(line, what, ": reports of a run have the loss by that name, ",
                 "eval/loss beside eval/METRIC; rename it");
  }
  if (!metric_names_.insert(metric.name()).second) {
    return Error(line, what, ": two metrics of that name; rename one");
  }
  HT_ASSIGN_OR_RETURN(const ValueId var, Find(line, what, metric.var()));
  HT_RETURN_IF_ERROR(ExpectScalar(line, what, var));
  HT_RETURN_IF_ERROR(
      Find(line, absl::StrCat(what, ": over"), metric.over()).status());
  program_->metrics.push_back({metric.name(), metric.var(), metric.over()});
  return absl::OkStatus();
}

void ProgramBuilder::SetMetrics() {
  for (int i = 0; i < model_.metric_size(); ++i) {
    errors_.Add(SetMetric(model_.metric(i), LineOf(file_.metric_lines, i)));
  }
}

void ProgramBuilder::SetOutputs() {
  absl::flat_hash_set<absl::string_view> seen;
  for (int i = 0; i < model_.output_size(); ++i) {
    const std::string& output = model_.output(i);
    const int line = LineOf(file_.output_lines, i);
    if (!seen.insert(output).second) {
      errors_.Add(Error(line, "output ", output, " is given twice"));
      continue;
    }
    if (errors_.Add(Find(line, "output", output).status())) {
      program_->outputs.push_back(output);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> BuildProgram(const ModelFile& model) {
  return ProgramBuilder(model).Run();
}

}  // namespace halftone

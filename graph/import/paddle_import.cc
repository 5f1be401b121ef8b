#include "graph/import/paddle_import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/import/loss_count.h"
#include "graph/import/paddle_init.h"
#include "graph/import/paddle_ops.h"
#include "graph/import/paddle_rules.h"
#include "graph/import/paddle_steps.h"
#include "graph/import/paddle_types.h"
#include "graph/import/refusals.h"
#include "graph/import/transposes.h"
#include "graph/import/unneeded.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

using paddle::OpDesc;
using paddle::VarDesc;

class Importer : public PaddleScope {
 public:
  Importer(const paddle::ProgramDesc& program, const std::string& file,
           const PaddleOptions& options)
      : program_(program),
        options_(options),
        steps_(StepsOf(program)),
        has_loss_(!options.loss.empty() || !steps_.loss.empty()) {
    result_.model.file = file;
    result_.ops = program.blocks(0).ops_size();
    const std::string version = PaddleVersion(program);
    result_.from = absl::StrCat("paddle ", version);
    result_.source =
        absl::StrCat("Paddle ", version, ", ", WithCommas(result_.ops),
                     " ops in block 0 of ", program.blocks_size());
    result_.no_loss = "no op has role 256";
    result_.left_out = steps_.left_out;
  }

  absl::StatusOr<PaddleModel> Run();

  std::string Read(const std::string& variable) override {
    const auto stopped = stopped_.find(variable);
    return stopped == stopped_.end() ? ValueOf(variable) : stopped->second;
  }
  std::string Write(const std::string& variable) override;
  bool IsRead(const std::string& variable) override {
    return read_.contains(variable);
  }
  bool IsReadOnlyBy(const std::string& variable, absl::string_view op,
                    absl::string_view slot) override;
  std::string Unused(const std::string& wish) override;
  const VarDesc* Variable(const std::string& name) override {
    const auto found = steps_.vars.find(name);
    if (found == steps_.vars.end()) return nullptr;
    return types_.Refined(found->second, ValueOf(name));
  }
  const TensorType* TypeOf(const std::string& variable) override {
    return types_.TypeOf(ValueOf(variable));
  }
  std::string FeedOfBatch() override;
  const OpDesc* Writer(const std::string& variable) override {
    const auto found = writers_.find(variable);
    return found == writers_.end() ? nullptr : found->second;
  }

 private:
  proto::Model& model() { return *result_.model.model; }
  // The value that the variable holds now, with its gradient.
  std::string ValueOf(const std::string& variable) const;
  void FindReads();
  void ImportOps();
  void ImportStep(const PaddleStep& step);
  // The op's values that gradients of parameters go through, and what stops
  // them where Paddle's variable says so.
  void FollowGradients(const OpDesc& op, const ImportedOp& imported);
  // Why a branch's op may not run where the branch is not taken.
  void CheckBranch(const PaddleStep& step, ImportedOp* imported);
  // Of variables that no op has written: feeds and parameters.
  void AddSource(const std::string& name, const OpDesc* op,
                 absl::string_view slot, const std::string& place);
  const proto::Feed& AddFeed(const VarDesc& var, const std::string& place);
  const proto::Parameter& AddParameter(const VarDesc& var, const OpDesc* op,
                                       absl::string_view slot,
                                       const std::string& place);
  absl::Status SetLoss();
  absl::Status CheckBatches();
  void SetOutputs();
  void Count();

  const paddle::ProgramDesc& program_;
  const PaddleOptions& options_;
  const PaddleSteps steps_;
  const bool has_loss_;
  PaddleTypes types_;
  bool channels_last_ = false;  // some op has them so
  PaddleModel result_;
  Refusals refusals_, notes_;
  absl::flat_hash_map<std::string, const OpDesc*> writers_;
  // By variable: the value that it holds now.
  absl::flat_hash_map<std::string, std::string> values_;
  absl::flat_hash_set<std::string> names_;  // of values
  // By variable whose gradient is stopped: the value that has none.
  absl::flat_hash_map<std::string, std::string> stopped_;
  absl::flat_hash_set<std::string> trained_;  // values that have a gradient
  absl::flat_hash_set<std::string> read_, taken_;
  std::vector<std::string> kept_;     // persistables that the op at hand writes
  std::vector<std::string> fetched_;  // in their order
  std::map<std::string, int> counts_;  // of names that are wished for again
  std::map<std::string, proto::Init> inits_;
  // What asks for it.
  std::map<std::pair<std::string, std::string>, std::string> equal_batches_;
};

std::string Importer::Unused(const std::string& wish) {
  std::string name = wish;
  while (!names_.insert(name).second) {
    name = absl::StrCat(wish, ".", ++counts_[wish]);
  }
  return name;
}

std::string Importer::ValueOf(const std::string& variable) const {
  const auto found = values_.find(variable);
  return found == values_.end() ? variable : found->second;
}

std::string Importer::Write(const std::string& variable) {
  const VarDesc* const var = Variable(variable);
  if (var != nullptr && var->persistable()) kept_.push_back(variable);
  const std::string name = Unused(variable);
  values_[variable] = name;
  stopped_.erase(variable);
  return name;
}

bool Importer::IsReadOnlyBy(const std::string& variable, absl::string_view op,
                            absl::string_view slot) {
  for (const PaddleStep& step : steps_.forward) {
    for (const OpDesc::Var& in : step.op->inputs()) {
      const bool reads = absl::c_linear_search(in.arguments(), variable) &&
                         !(step.op->type() == op && in.parameter() == slot);
      if (reads) return false;
    }
  }
  return !absl::c_linear_search(steps_.fetched, variable);
}

std::string Importer::FeedOfBatch() {
  for (const proto::Feed& feed : model().feed()) {
    if (feed.dims_size() > 0 && feed.dims(0) == -1) return feed.name();
  }
  return "";
}

void Importer::FindReads() {
  for (const PaddleStep& step : steps_.forward) {
    for (const OpDesc::Var& in : step.op->inputs()) {
      read_.insert(in.arguments().begin(), in.arguments().end());
    }
  }
  read_.insert(steps_.fetched.begin(), steps_.fetched.end());
  read_.insert(steps_.conditions.begin(), steps_.conditions.end());
  if (!steps_.loss.empty()) read_.insert(steps_.loss);
  if (!options_.loss.empty()) read_.insert(options_.loss);
}

const proto::Feed& Importer::AddFeed(const VarDesc& var,
                                     const std::string& place) {
  const paddle::VarType::TensorDesc& tensor = var.type().lod_tensor().tensor();
  const std::string what = absl::StrCat("feed ", var.name());
  proto::Feed& feed = *model().add_feed();
  feed.set_name(var.name());
  feed.set_dtype(FromPaddle(tensor.data_type()));
  if (feed.dtype() == proto::INVALID) {
    refusals_.Add(
        what, absl::StrCat("its dtype is ", NameOf(tensor.data_type())), place);
  }
  const auto given = options_.dims.find(var.name());
  if (given != options_.dims.end()) {
    feed.mutable_dims()->Add(given->second.begin(), given->second.end());
    return feed;
  }
  *feed.mutable_dims() = tensor.dims();
  for (int i = 0; i < tensor.dims_size(); ++i) {
    if (tensor.dims(i) >= 1 || (i == 0 && tensor.dims(i) == -1)) continue;
    refusals_.Add(
        what,
        absl::StrCat("dims [", absl::StrJoin(tensor.dims(), ", "),
                     "]: expected 1 or more, or -1, the batch, first; give ",
                     "them with --dims ", var.name(), "=-1,..."),
        place);
    break;
  }
  return feed;
}

const proto::Parameter& Importer::AddParameter(const VarDesc& var,
                                               const OpDesc* op,
                                               absl::string_view slot,
                                               const std::string& place) {
  const paddle::VarType::TensorDesc& tensor = var.type().lod_tensor().tensor();
  const bool statistic = slot == "Mean" || slot == "Variance";
  proto::Parameter& param =
      statistic ? *model().add_stat() : *model().add_param();
  param.set_name(var.name());
  *param.mutable_dims() = tensor.dims();
  const proto::DataType dtype = FromPaddle(tensor.data_type());
  if (dtype == proto::INVALID) {
    refusals_.Add(absl::StrCat("parameter ", var.name()),
                  absl::StrCat("its dtype is ", NameOf(tensor.data_type())),
                  place);
  }
  const bool whole = dtype == proto::I32 || dtype == proto::I64 ||
                     dtype == proto::U8 || dtype == proto::BOOL;
  // Float parameters are f32, whatever they were kept in.
  if (whole) param.set_dtype(dtype);
  if (!statistic && (whole || !var.is_parameter() || var.stop_gradient())) {
    param.set_trainable(false);
  }
  if (!statistic && param.trainable()) trained_.insert(var.name());
  const auto init = inits_.find(var.name());
  *param.mutable_init() =
      init != inits_.end() ? init->second : DefaultInit(param, op, slot);
  return param;
}

void Importer::AddSource(const std::string& name, const OpDesc* op,
                         absl::string_view slot, const std::string& place) {
  if (names_.contains(name)) return;
  const VarDesc* const var = Variable(name);
  if (var == nullptr) {
    refusals_.Add(absl::StrCat("variable ", name), "nothing declares it",
                  place);
    names_.insert(name);
    return;
  }
  if (var->persistable()) {
    const proto::Parameter& param = AddParameter(*var, op, slot, place);
    types_.AddSource(name, param.dtype(), param.dims());
  } else {
    const proto::Feed& feed = AddFeed(*var, place);
    types_.AddSource(name, feed.dtype(), feed.dims());
  }
  names_.insert(name);
}

void Importer::CheckBranch(const PaddleStep& step, ImportedOp* imported) {
  for (const OpDesc::Var& out : step.op->outputs()) {
    for (const std::string& name : out.arguments()) {
      const VarDesc* const var = Variable(name);
      const bool kept = var != nullptr && var->persistable();
      const auto local = steps_.locals.find(name);
      const bool own =
          local != steps_.locals.end() && local->second == step.block;
      // What is there before has two values after the conditional, and no
      // select_input says which.
      if (!kept && (own || !names_.contains(name))) continue;
      imported->refusals.push_back({"a branch writes what is there without it",
                                    absl::StrCat(": ", name)});
    }
  }
}

void Importer::FollowGradients(const OpDesc& op, const ImportedOp& imported) {
  for (const proto::OpNode& node : imported.nodes) {
    const OpSchema* const schema = Ops().Find(node.type());
    bool reached = false;
    for (const proto::SlotVars& in : node.in()) {
      for (const std::string& name : in.var()) {
        reached = reached || trained_.contains(name);
      }
    }
    if (!reached || schema == nullptr || !schema->has_grad()) continue;
    for (const proto::SlotVars& out : node.out()) {
      trained_.insert(out.var().begin(), out.var().end());
    }
  }
  for (const OpDesc::Var& out : op.outputs()) {
    for (const std::string& name : out.arguments()) {
      const VarDesc* const var = Variable(name);
      const std::string value = ValueOf(name);
      if (var == nullptr || !var->stop_gradient() || !has_loss_) continue;
      const auto dtype = var->type().lod_tensor().tensor().data_type();
      if (!trained_.contains(value) || !IsPaddleFloat(dtype)) continue;
      ImportedOp stop;
      stopped_[name] = Unused(absl::StrCat(value, ".stopped"));
      AddNode("share_data", value, "", stopped_[name], &stop);
      *model().add_op() = stop.nodes[0];
      types_.AddNode(stop.nodes[0]);
    }
  }
}

void Importer::ImportStep(const PaddleStep& step) {
  const OpDesc& op = *step.op;
  const std::string place = PlaceOf(step);
  for (const OpDesc::Var& in : op.inputs()) {
    for (const std::string& name : in.arguments()) {
      if (values_.contains(name)) continue;
      AddSource(name, &op, in.parameter(), place);
    }
  }
  ImportedOp imported;
  if (step.block > 0) CheckBranch(step, &imported);
  if (imported.refusals.empty()) imported = ImportOp(op, *this);
  channels_last_ = channels_last_ || imported.channels_last;
  for (const std::string& name : kept_) {
    imported.refusals.push_back(
        {"writes what is kept from step to step", absl::StrCat(": ", name)});
  }
  kept_.clear();
  if (imported.through_f32) notes_.Add(op.type(), kThroughF32, place);
  if (!imported.refusals.empty()) {
    std::string kind, why;
    for (const Refusal& refusal : imported.refusals) {
      absl::StrAppend(&kind, refusal.kind, "\n");
      absl::StrAppend(&why, why.empty() ? "" : ", ", refusal.kind,
                      refusal.found);
    }
    refusals_.Add(op.type(), kind, why, place);
  }
  for (const proto::OpNode& node : imported.nodes) {
    *model().add_op() = node;
    types_.AddNode(node);
  }
  FollowGradients(op, imported);
  for (proto::Metric& metric : imported.metrics) {
    const int others = counts_[absl::StrCat("metric ", metric.name())]++;
    if (others > 0) absl::StrAppend(metric.mutable_name(), "_", others);
    *model().add_metric() = std::move(metric);
  }
  taken_.insert(imported.taken.begin(), imported.taken.end());
  for (const auto& pair : imported.equal_batches) {
    equal_batches_[pair] = absl::StrCat(op.type(), " at ", place);
  }
  for (const OpDesc::Var& out : op.outputs()) {
    for (const std::string& name : out.arguments()) {
      writers_[name] = &op;
      // What a refused op would have made is no feed.
      if (!imported.refusals.empty()) values_.try_emplace(name, name);
    }
  }
}

void Importer::ImportOps() {
  for (const PaddleStep& step : steps_.forward) {
    if (!IsAmpCast(*step.op)) {
      ImportStep(step);
      continue;
    }
    const std::string x = FirstOf(*step.op, "X");
    if (!values_.contains(x)) AddSource(x, nullptr, "", PlaceOf(step));
    values_[OutputsOf(*step.op, "Out")[0]] = Read(x);
    ++result_.left_out["casts of AMP"];
  }
}

absl::Status Importer::SetLoss() {
  const bool asked = !options_.loss.empty();
  const std::string& variable = asked ? options_.loss : steps_.loss;
  if (variable.empty()) return absl::OkStatus();
  const std::string value = ValueOf(variable);
  if (!names_.contains(value)) {
    std::vector<std::string> names;
    for (const proto::OpNode& op : model().op()) {
      names.push_back(op.out(0).var(0));
    }
    return ModelError(result_.model.file, ": --loss ", variable,
                      ": no forward op makes it", NearestHint(variable, names));
  }
  result_.loss_from = asked ? "--loss" : "op role 256";
  *model().mutable_loss() = LossOf(value, model());
  return absl::OkStatus();
}

// Of a program that makes just these values: dims are known once it is built.
absl::Status Importer::CheckBatches() {
  if (equal_batches_.empty()) return absl::OkStatus();
  ModelFile copy = result_.model;
  std::set<std::string> values;
  for (const auto& pair : equal_batches_) {
    values.insert({pair.first.first, pair.first.second});
  }
  *copy.model->mutable_output() = {values.begin(), values.end()};
  DropUnneeded(&*copy.model);
  HT_ASSIGN_OR_RETURN(const auto program, BuildProgram(copy));
  const Block& block = program->entries()[0]->block();
  for (const auto& [pair, place] : equal_batches_) {
    const ValueId x = block.FindValue(pair.first);
    const ValueId y = block.FindValue(pair.second);
    const bool equal = x.valid() && y.valid() &&
                       block.type(x).dims[0] == block.type(y).dims[0];
    if (equal) continue;
    return ModelError(result_.model.file, ": ", place, ": expected ",
                      pair.first, " to have the first dim of ", pair.second,
                      "; give a size in place of -1");
  }
  return absl::OkStatus();
}

// What the program fetches, else what nobody reads, else what the loss compares
// with labels.
void Importer::SetOutputs() {
  absl::flat_hash_set<std::string> seen = {model().loss().var()};
  for (const std::string& variable : steps_.fetched) {
    const std::string value = ValueOf(variable);
    if (taken_.contains(variable) || !seen.insert(value).second) continue;
    model().add_output(value);
  }
  if (!steps_.fetched.empty()) return;
  absl::flat_hash_set<std::string> used;
  for (const proto::OpNode& op : model().op()) {
    for (const proto::SlotVars& in : op.in()) {
      used.insert(in.var().begin(), in.var().end());
    }
  }
  for (const proto::Metric& metric : model().metric()) {
    used.insert(metric.var());
  }
  for (const proto::OpNode& op : model().op()) {
    bool read = false;
    for (const proto::SlotVars& out : op.out()) {
      for (const std::string& name : out.var()) {
        // accuracy's top_k: read by what a metric has replaced.
        read = read || used.contains(name) || read_.contains(name);
      }
    }
    const std::string& name = op.out(0).var(0);
    if (!read && seen.insert(name).second) model().add_output(name);
  }
  if (model().output_size() > 0 || !model().has_loss()) return;
  const std::string predicted = PredictionOf(model());
  if (!predicted.empty()) model().add_output(predicted);
}

// What is said of the model that came out.
void Importer::Count() {
  result_.notes = notes_.Lines();
  for (const auto* all : {&model().param(), &model().stat()}) {
    for (const proto::Parameter& param : *all) {
      const bool known = inits_.count(param.name()) > 0;
      ++(known ? result_.startup_inits
               : result_.default_inits)[KindOf(param.init())];
    }
  }
  absl::flat_hash_set<std::string> feeds;
  for (const proto::Feed& feed : model().feed()) feeds.insert(feed.name());
  for (const VarDesc& var : program_.blocks(0).vars()) {
    if (var.need_check_feed() && !feeds.contains(var.name())) {
      result_.unread_feeds.push_back(var.name());
    }
  }
  if (model().has_loss()) return;
  for (const std::string& output : model().output()) {
    if (LossOf(output, model()).mean_over() != output) {
      result_.loss_candidates.push_back(output);
    }
  }
}

absl::StatusOr<PaddleModel> Importer::Run() {
  if (options_.startup != nullptr) inits_ = StartupInits(*options_.startup);
  if (steps_.forward.empty()) {
    return ModelError(result_.model.file, ": expected forward ops, found ",
                      "none among ", result_.ops, "; is it a startup program?");
  }
  FindReads();
  ImportOps();
  HT_RETURN_IF_ERROR(refusals_.ToStatus(result_.model.file));
  model().set_name(options_.name);
  model().set_format(kModelFormat);
  HT_RETURN_IF_ERROR(SetLoss());
  SetOutputs();
  HT_RETURN_IF_ERROR(CheckBatches());
  if (channels_last_) MoveTransposes(&model());
  DropUnneeded(&model());
  Count();
  HT_RETURN_IF_ERROR(BuildProgram(result_.model).status());
  return std::move(result_);
}

}  // namespace

absl::StatusOr<PaddleModel> ImportPaddle(const paddle::ProgramDesc& program,
                                         const std::string& file,
                                         const PaddleOptions& options) {
  return Importer(program, file, options).Run();
}

}  // namespace halftone

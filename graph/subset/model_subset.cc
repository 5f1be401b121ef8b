#include "graph/subset/model_subset.h"

#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "graph/base/dtype.h"
#include "graph/ir/program.h"
#include "graph/ir/well_known.h"
#include "proto/program.pb.h"

namespace halftone {
namespace {

// The type of a value as a feed has it; none: no feed has such a type.
std::optional<proto::Feed> AsFeed(const std::string& name,
                                  const TensorType& type) {
  proto::Feed feed;
  feed.set_name(name);
  proto::DataType dtype;
  if (!proto::DataType_Parse(absl::AsciiStrToUpper(Name(type.dtype)), &dtype)) {
    return std::nullopt;
  }
  if (dtype != proto::F32) feed.set_dtype(dtype);
  for (size_t i = 0; i < type.dims.size(); ++i) {
    const bool samples = i == 0 && type.dims[i] == Dim::Symbol(0);
    if (!samples && !type.dims[i].is_constant()) return std::nullopt;
    feed.add_dims(samples ? -1 : type.dims[i].coefficient());
  }
  return feed;
}

// Makes one smaller model.
class Smaller {
 public:
  Smaller(const ModelFile& source, const std::vector<int>& ops)
      : whole_(*source.model), ops_(ops.begin(), ops.end()) {
    auto program = BuildProgram(source);
    if (program.ok()) program_ = *std::move(program);
  }
  proto::Model Make();

 private:
  // What stands for the value; empty: nothing. Null: not known yet.
  const std::string* Find(const std::string& value) const {
    const auto found = stands_for_.find(value);
    return found == stands_for_.end() ? nullptr : &found->second;
  }
  const TensorType* TypeOf(const std::string& value) const;
  bool KnowsInputs(const proto::OpNode& op) const;
  void Take(int index);
  void Replace(const proto::OpNode& op);
  void TakeOps();
  void TakeInputs();
  bool IsMade(const std::string& value) const { return made_.count(value) > 0; }
  void TakeLoss();
  void TakeResults();

  const proto::Model& whole_;
  absl::flat_hash_set<int> ops_;
  std::unique_ptr<Program> program_;  // null: the whole has no types
  absl::flat_hash_map<std::string, std::string> stands_for_;
  absl::flat_hash_map<std::string, proto::Feed> new_feeds_;
  absl::flat_hash_set<std::string> made_;  // by ops that stay
  std::set<std::string> read_;             // by them, the loss and the like
  proto::Model model_;
};

const TensorType* Smaller::TypeOf(const std::string& value) const {
  if (program_ == nullptr) return nullptr;
  const Block& block = program_->FindEntry(kTrainEntry)->block();
  const ValueId id = block.FindValue(value);
  return id.valid() ? &block.type(id) : nullptr;
}

bool Smaller::KnowsInputs(const proto::OpNode& op) const {
  for (const proto::SlotVars& slot : op.in()) {
    for (const std::string& value : slot.var()) {
      if (Find(value) == nullptr) return false;
    }
  }
  return true;
}

// An op that is gone: what its readers read.
void Smaller::Replace(const proto::OpNode& op) {
  for (const proto::SlotVars& out : op.out()) {
    for (const std::string& value : out.var()) {
      std::string& other = stands_for_[value];
      const TensorType* const type = TypeOf(value);
      if (type == nullptr) continue;
      for (const proto::SlotVars& slot : op.in()) {
        for (const std::string& input : slot.var()) {
          const TensorType* const of_input = TypeOf(input);
          if (!other.empty() || of_input == nullptr) continue;
          if (of_input->dtype != type->dtype || of_input->dims != type->dims) {
            continue;
          }
          other = *Find(input);
        }
      }
      if (!other.empty()) continue;
      if (auto feed = AsFeed(value, *type)) {
        new_feeds_[value] = *std::move(feed);
        other = value;
      }
    }
  }
}

void Smaller::Take(int index) {
  proto::OpNode op = whole_.op(index);
  bool stays = ops_.contains(index);
  for (proto::SlotVars& slot : *op.mutable_in()) {
    for (std::string& value : *slot.mutable_var()) {
      const std::string& other = *Find(value);
      stays = stays && !other.empty();
      value = other;
    }
  }
  if (!stays) return Replace(whole_.op(index));
  for (const proto::SlotVars& slot : op.in()) {
    read_.insert(slot.var().begin(), slot.var().end());
  }
  for (const proto::SlotVars& slot : op.out()) {
    for (const std::string& value : slot.var()) {
      stands_for_[value] = value;
      made_.insert(value);
    }
  }
  *model_.add_op() = std::move(op);
}

// Ops are listed in any order; what reads what no op makes is left to the
// model's reader.
void Smaller::TakeOps() {
  for (const auto& feed : whole_.feed()) stands_for_[feed.name()] = feed.name();
  for (const auto* list : {&whole_.param(), &whole_.stat()}) {
    for (const auto& cell : *list) stands_for_[cell.name()] = cell.name();
  }
  std::vector<int> open(whole_.op_size());
  std::iota(open.begin(), open.end(), 0);
  while (!open.empty()) {
    std::vector<int> later;
    for (const int index : open) {
      KnowsInputs(whole_.op(index)) ? Take(index) : later.push_back(index);
    }
    if (later.size() == open.size()) return;
    open = std::move(later);
  }
}

void Smaller::TakeLoss() {
  if (!whole_.has_loss()) return;
  proto::Loss loss = whole_.loss();
  const auto take = [this](std::string* value) {
    const std::string* const other = Find(*value);
    if (other == nullptr || other->empty()) return false;
    *value = *other;
    return true;
  };
  loss.clear_part();
  for (proto::LossPart part : whole_.loss().part()) {
    if (take(part.mutable_var()) && IsMade(part.var())) {
      *loss.add_part() = std::move(part);
    }
  }
  const bool has_var =
      loss.part_size() > 0 || (take(loss.mutable_var()) && IsMade(loss.var()));
  if (!has_var || !take(loss.mutable_mean_over())) return;
  if (loss.has_mask() && !take(loss.mutable_mask())) return;
  for (std::string& value : *loss.mutable_denominator()) {
    if (!take(&value)) return;
  }
  for (const std::string& value : loss.denominator()) read_.insert(value);
  read_.insert(loss.mean_over());
  if (loss.has_mask()) read_.insert(loss.mask());
  *model_.mutable_loss() = std::move(loss);
}

// A model has a loss, a metric or an output.
void Smaller::TakeResults() {
  for (const proto::Metric& metric : whole_.metric()) {
    const std::string* const over = Find(metric.over());
    if (!IsMade(metric.var()) || over == nullptr || *over != metric.over()) {
      continue;
    }
    *model_.add_metric() = metric;
    read_.insert(metric.over());
  }
  for (const std::string& output : whole_.output()) {
    if (IsMade(output)) model_.add_output(output);
  }
  if (model_.has_loss() || model_.metric_size() + model_.output_size() > 0) {
    return;
  }
  for (const proto::OpNode& op : model_.op()) {
    for (const proto::SlotVars& slot : op.out()) {
      for (const std::string& value : slot.var()) {
        if (read_.count(value) == 0) model_.add_output(value);
      }
    }
  }
}

void Smaller::TakeInputs() {
  for (const proto::Feed& feed : whole_.feed()) {
    if (read_.count(feed.name()) > 0) *model_.add_feed() = feed;
  }
  for (const std::string& value : read_) {
    const auto feed = new_feeds_.find(value);
    if (feed != new_feeds_.end()) *model_.add_feed() = feed->second;
  }
  for (const proto::Parameter& param : whole_.param()) {
    if (read_.count(param.name()) > 0) *model_.add_param() = param;
  }
  for (const proto::Parameter& stat : whole_.stat()) {
    if (read_.count(stat.name()) > 0) *model_.add_stat() = stat;
  }
}

proto::Model Smaller::Make() {
  model_.set_name(whole_.name());
  model_.set_format(whole_.format());
  TakeOps();
  TakeLoss();
  TakeResults();
  TakeInputs();
  return std::move(model_);
}

}  // namespace

ModelFile WithOps(const ModelFile& source, const std::vector<int>& ops) {
  return {ModelMessage(Smaller(source, ops).Make()), source.file};
}

ModelFile WithLossBehind(const ModelFile& source, int last) {
  const proto::OpNode& op = source.model->op(last);
  if (op.out_size() == 0 || op.out(0).var_size() == 0) return {};
  const std::string value = op.out(0).var(0), loss = value + ".mean";
  ModelFile cut = source;
  proto::OpNode& mean = *cut.model->add_op();
  mean.set_type("mean");
  proto::SlotVars& in = *mean.add_in();
  in.set_slot("X");
  in.add_var(value);
  proto::SlotVars& out = *mean.add_out();
  out.set_slot("Out");
  out.add_var(loss);
  cut.model->clear_metric();
  cut.model->clear_output();
  cut.model->mutable_loss()->Clear();
  cut.model->mutable_loss()->set_var(loss);
  cut.model->mutable_loss()->set_mean_over(value);
  std::vector<int> ops(last + 1);
  std::iota(ops.begin(), ops.end(), 0);
  ops.push_back(cut.model->op_size() - 1);
  return WithOps(cut, ops);
}

}  // namespace halftone

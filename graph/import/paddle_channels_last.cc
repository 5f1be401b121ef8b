// Ops of [N, H, W, C] as ours of [N, C, H, W] between two transposes, which
// MoveTransposes takes out of a net again.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;
using paddle::OpDesc;
using paddle::VarDesc;

struct Order {
  absl::string_view last, first;
};
constexpr Order kOrders[] = {
    {"NHWC", "NCHW"}, {"NDHWC", "NCDHW"}, {"NLC", "NCL"}, {"NWC", "NCL"}};
constexpr absl::string_view kNames[] = {"data_format", "data_layout"};
// Slots of tensors with channels; a filter's dims have one order.
constexpr absl::string_view kTensors[] = {"Input", "X", "Output", "Out", "Y"};

bool IsTensor(absl::string_view slot) {
  return std::find(std::begin(kTensors), std::end(kTensors), slot) !=
         std::end(kTensors);
}

// The values around the op as if its channels came first.
class ChannelsFirst : public PaddleScope {
 public:
  ChannelsFirst(const OpDesc& op, PaddleScope* outer, ImportedOp* result)
      : outer_(*outer), result_(*result) {
    for (const OpDesc::Var& in : op.inputs()) {
      if (!IsTensor(in.parameter())) continue;
      for (const std::string& name : in.arguments()) Turn(name);
    }
    for (const OpDesc::Var& out : op.outputs()) {
      if (!IsTensor(out.parameter())) continue;
      for (const std::string& name : out.arguments()) Turn(name);
    }
  }

  std::string Read(const std::string& variable) override {
    const std::string value = outer_.Read(variable);
    const VarDesc* const turned = Turned(variable);
    if (turned == nullptr) return value;
    IntList order = {0, RankOf(*turned) - 1};
    for (int i = 1; i < RankOf(*turned) - 1; ++i) order.push_back(i);
    const std::string first = Unused(absl::StrCat(value, ".channels_first"));
    Transpose(value, order, first, &result_);
    return first;
  }
  std::string Write(const std::string& variable) override {
    const std::string value = outer_.Write(variable);
    const VarDesc* const turned = Turned(variable);
    if (turned == nullptr) return value;
    IntList order = {0};
    for (int i = 2; i < RankOf(*turned); ++i) order.push_back(i);
    order.push_back(1);
    const std::string first = Unused(absl::StrCat(value, ".channels_first"));
    Transpose(first, order, value, &behind_);
    return first;
  }
  bool IsRead(const std::string& variable) override {
    return outer_.IsRead(variable);
  }
  bool IsReadOnlyBy(const std::string& variable, absl::string_view op,
                    absl::string_view slot) override {
    return outer_.IsReadOnlyBy(variable, op, slot);
  }
  std::string Unused(const std::string& wish) override {
    return outer_.Unused(wish);
  }
  const VarDesc* Variable(const std::string& name) override {
    const VarDesc* const turned = Turned(name);
    return turned == nullptr ? outer_.Variable(name) : turned;
  }
  // As Paddle has it, with the channels last.
  const TensorType* TypeOf(const std::string& variable) override {
    return outer_.TypeOf(variable);
  }
  std::string FeedOfBatch() override { return outer_.FeedOfBatch(); }
  const OpDesc* Writer(const std::string& variable) override {
    return outer_.Writer(variable);
  }

  // What stands behind the op.
  const ImportedOp& behind() const { return behind_; }

 private:
  static int RankOf(const VarDesc& var) {
    return var.type().lod_tensor().tensor().dims_size();
  }
  static void Transpose(const std::string& from, const IntList& order,
                        const std::string& to, ImportedOp* result) {
    AddNode("transpose2", from, "", to, result);
    SetLast("axis", order, result);
  }

  void Turn(const std::string& name) {
    const VarDesc* const var = outer_.Variable(name);
    if (var == nullptr || !var->type().has_lod_tensor() || RankOf(*var) < 3 ||
        Turned(name) != nullptr) {
      return;
    }
    turned_.push_back(*var);
    auto& dims = *turned_.back()
                      .mutable_type()
                      ->mutable_lod_tensor()
                      ->mutable_tensor()
                      ->mutable_dims();
    std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  }
  const VarDesc* Turned(const std::string& name) const {
    for (const VarDesc& var : turned_) {
      if (var.name() == name) return &var;
    }
    return nullptr;
  }

  PaddleScope& outer_;
  ImportedOp& result_;
  ImportedOp behind_;
  std::vector<VarDesc> turned_;
};

}  // namespace

bool HasChannelsLast(const OpDesc& op) {
  for (const absl::string_view name : kNames) {
    for (const Order& order : kOrders) {
      if (StringAttr(op, name, "") == order.last) return true;
    }
  }
  return false;
}

void ImportChannelsLast(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                        ImportedOp* result) {
  OpDesc first = op;
  for (OpDesc::Attr& attr : *first.mutable_attrs()) {
    if (std::find(std::begin(kNames), std::end(kNames), attr.name()) ==
        std::end(kNames)) {
      continue;
    }
    for (const Order& order : kOrders) {
      if (attr.s() == order.last) attr.set_s(std::string(order.first));
    }
  }
  result->channels_last = true;
  ChannelsFirst values(first, &scope, result);
  rule.convert(first, rule, values, result);
  for (const proto::OpNode& node : values.behind().nodes) {
    result->nodes.push_back(node);
  }
}

}  // namespace halftone

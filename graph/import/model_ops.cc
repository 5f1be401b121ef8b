#include "graph/import/model_ops.h"

#include <algorithm>
#include <utility>

#include "graph/import/unneeded.h"

namespace halftone {

using proto::OpNode;

std::string InputOf(const OpNode& op, absl::string_view slot) {
  for (const proto::SlotVars& in : op.in()) {
    if (in.slot() == slot && in.var_size() == 1) return in.var(0);
  }
  return "";
}

const proto::Attribute* AttrOf(const OpNode& op, absl::string_view name) {
  for (const proto::Attribute& attr : op.attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

double RealOf(const OpNode& op, absl::string_view name, double otherwise) {
  const proto::Attribute* const attr = AttrOf(op, name);
  return attr == nullptr ? otherwise : attr->f();
}

bool BoolOf(const OpNode& op, absl::string_view name) {
  const proto::Attribute* const attr = AttrOf(op, name);
  return attr != nullptr && attr->b();
}

bool IsList(const OpNode& op, absl::string_view name,
            const std::vector<int64_t>& list) {
  const proto::Attribute* const attr = AttrOf(op, name);
  return attr != nullptr &&
         std::equal(list.begin(), list.end(), attr->ints().begin(),
                    attr->ints().end());
}

void BecomeOp(absl::string_view type, const std::string& x, OpNode* op) {
  op->set_type(std::string(type));
  op->clear_attr();
  op->clear_in();
  op->add_in()->set_slot("X");
  op->mutable_in(0)->add_var(x);
}

void BecomeWith(const OpNode& maker, absl::string_view slot,
                const std::string& value, OpNode* op) {
  OpNode joined = maker;
  proto::SlotVars& in = *joined.add_in();
  in.set_slot(std::string(slot));
  in.add_var(value);
  joined.mutable_out(0)->set_var(0, op->out(0).var(0));
  *op = std::move(joined);
}

ModelOps::ModelOps(proto::Model* const model) : wanted_(WantedValues(*model)) {
  for (OpNode& op : *model->mutable_op()) {
    for (const proto::SlotVars& in : op.in()) {
      for (const std::string& name : in.var()) {
        ++readers_[name];
        last_readers_[name] = &op;
      }
    }
    for (const proto::SlotVars& out : op.out()) {
      for (const std::string& name : out.var()) makers_[name] = &op;
    }
  }
}

const OpNode* ModelOps::Maker(const std::string& name) const {
  const auto maker = makers_.find(name);
  return maker == makers_.end() ? nullptr : maker->second;
}

const OpNode* ModelOps::Maker(const std::string& name,
                              absl::string_view type) const {
  const OpNode* const maker = Maker(name);
  return maker != nullptr && maker->type() == type ? maker : nullptr;
}

const OpNode* ModelOps::Inner(const std::string& name, absl::string_view type,
                              int readers) const {
  const auto found = readers_.find(name);
  if (found == readers_.end() || found->second != readers ||
      wanted_.contains(name)) {
    return nullptr;
  }
  return Maker(name, type);
}

OpNode* ModelOps::Reader(const std::string& name) const {
  const auto found = readers_.find(name);
  if (found == readers_.end() || found->second != 1 || wanted_.contains(name)) {
    return nullptr;
  }
  return last_readers_.at(name);
}

std::vector<std::pair<std::string, std::string>> ModelOps::Operands(
    const OpNode& op, absl::string_view type) {
  if (op.type() != type || op.attr_size() > 0) return {};
  const std::string x = InputOf(op, "X"), y = InputOf(op, "Y");
  return {{x, y}, {y, x}};
}

}  // namespace halftone

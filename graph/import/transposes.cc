#include "graph/import/transposes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/io/model_values.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;

proto::Attribute* FindAttr(proto::OpNode* op, absl::string_view name) {
  for (proto::Attribute& attr : *op->mutable_attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

bool IsTranspose(const proto::OpNode& op) {
  return op.type() == "transpose2" || op.type() == "transpose";
}

class Mover {
 public:
  explicit Mover(proto::Model* model) : model_(*model) {
    const auto add = [this](const auto& all) {
      for (const auto& one : all) {
        names_.insert(one.name());
        ranks_[one.name()] = one.dims_size();
      }
    };
    add(model_.feed());
    add(model_.param());
    add(model_.stat());
    for (const proto::OpNode& op : model_.op()) {
      for (const proto::SlotVars& out : op.out()) {
        names_.insert(out.var().begin(), out.var().end());
      }
    }
  }

  void Run() {
    for (proto::OpNode& op : *model_.mutable_op()) {
      if (IsTranspose(op)) {
        Remember(op);
        continue;
      }
      if (Move(&op)) continue;
      ops_.push_back(std::move(op));
    }
    model_.clear_op();
    for (proto::OpNode& op : ops_) *model_.add_op() = std::move(op);
  }

 private:
  // A value is another one, its dims in this order.
  struct Moved {
    std::string from;
    IntList order;
  };

  std::string Unused(const std::string& wish) {
    std::string name = wish;
    for (int i = 1; !names_.insert(name).second; ++i) {
      name = absl::StrCat(wish, ".", i);
    }
    return name;
  }

  void AddTranspose(const std::string& from, const IntList& order,
                    const std::string& to) {
    proto::OpNode op;
    op.set_type("transpose2");
    op.add_in()->set_slot("X");
    op.mutable_in(0)->add_var(from);
    op.add_out()->set_slot("Out");
    op.mutable_out(0)->add_var(to);
    proto::Attribute& attr = *op.add_attr();
    attr.set_name("axis");
    attr.mutable_ints()->Add(order.begin(), order.end());
    ops_.push_back(std::move(op));
    moved_[to] = {from, order};
  }

  // A transpose of a transpose is one of what that one reads; where it undoes
  // it, those who read it read that itself, as those of one that is there.
  void Remember(const proto::OpNode& op) {
    proto::OpNode copy = op;
    const proto::Attribute* const attr = FindAttr(&copy, "axis");
    if (attr == nullptr || op.in_size() != 1 || op.out_size() < 1) {
      ops_.push_back(op);
      return;
    }
    IntList order(attr->ints().begin(), attr->ints().end());
    const std::string& to = op.out(0).var(0);
    std::string from = Read(op.in(0).var(0));
    const auto before = moved_.find(from);
    if (before != moved_.end() && before->second.order.size() == order.size()) {
      IntList both;
      for (const int64_t axis : order) {
        both.push_back(before->second.order[axis]);
      }
      order = std::move(both);
      from = before->second.from;
    }
    AddTranspose(from, order, to);
    const bool undone = std::is_sorted(order.begin(), order.end());
    const std::string first =
        undone ? from
               : there_.try_emplace({from, std::move(order)}, to).first->second;
    if (first == to) return;
    same_[to] = first;
    moved_.erase(to);
  }

  std::string Read(const std::string& name) const {
    const auto same = same_.find(name);
    return same == same_.end() ? name : same->second;
  }

  // The order that all of the op's values have, or all but a Y with the last
  // dim alone, which is told; empty: it stays as it is.
  IntList OrderOf(const proto::OpNode& op, bool* has_last_dim) const {
    const OpSchema* const schema = Ops().Find(op.type());
    const bool joins = op.type() == "concat";
    if (schema == nullptr || op.out_size() != 1 || op.out(0).var_size() != 1 ||
        (schema->layout() != LayoutRule::kAny && !joins)) {
      return {};
    }
    IntList order;
    for (const proto::SlotVars& in : op.in()) {
      for (const std::string& name : in.var()) {
        const auto moved = moved_.find(name);
        if (moved != moved_.end()) {
          if (!order.empty() && order != moved->second.order) return {};
          order = moved->second.order;
          continue;
        }
        const auto rank = ranks_.find(name);
        const bool last_dim = !joins && in.slot() == "Y" &&
                              rank != ranks_.end() && rank->second == 1;
        if (!last_dim) return {};
        *has_last_dim = true;
      }
    }
    return order;
  }

  // False: there is no such axis.
  static bool MoveAxis(const IntList& order, int64_t otherwise,
                       proto::OpNode* op) {
    proto::Attribute* axis = FindAttr(op, "axis");
    const auto rank = static_cast<int64_t>(order.size());
    const int64_t given = axis == nullptr ? otherwise : axis->i();
    const int64_t own = given < 0 ? given + rank : given;
    if (own < 0 || own >= rank) return false;
    if (axis == nullptr) axis = op->add_attr();
    axis->set_name("axis");
    axis->set_i(order[own]);
    return true;
  }

  // False: it stays as it is.
  bool Move(proto::OpNode* op) {
    for (proto::SlotVars& in : *op->mutable_in()) {
      for (std::string& name : *in.mutable_var()) name = Read(name);
    }
    bool has_last_dim = false;
    const IntList order = OrderOf(*op, &has_last_dim);
    const bool joins = op->type() == "concat";
    if (order.empty()) return false;
    if ((joins || has_last_dim) && !MoveAxis(order, joins ? 0 : -1, op)) {
      return false;
    }
    for (proto::SlotVars& in : *op->mutable_in()) {
      for (std::string& name : *in.mutable_var()) {
        const auto moved = moved_.find(name);
        if (moved != moved_.end()) name = moved->second.from;
      }
    }
    const std::string out = op->out(0).var(0);
    const std::string made = Unused(absl::StrCat(out, ".moved"));
    op->mutable_out(0)->set_var(0, made);
    ops_.push_back(std::move(*op));
    AddTranspose(made, order, out);
    return true;
  }

  proto::Model& model_;
  std::vector<proto::OpNode> ops_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, int> ranks_;  // of sources
  absl::flat_hash_map<std::string, Moved> moved_;
  absl::flat_hash_map<std::pair<std::string, IntList>, std::string> there_;
  absl::flat_hash_map<std::string, std::string> same_;
};

}  // namespace

void MoveTransposes(proto::Model* model) { Mover(model).Run(); }

}  // namespace halftone

#include "graph/import/loss_count.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"

namespace halftone {
namespace {

using proto::OpNode;

const std::string* First(const OpNode& op, absl::string_view slot) {
  for (const proto::SlotVars& in : op.in()) {
    if (in.slot() == slot && in.var_size() > 0) return &in.var(0);
  }
  return nullptr;
}

bool AttrIs(const OpNode& op, absl::string_view name, bool value) {
  for (const proto::Attribute& attr : op.attr()) {
    if (attr.name() == name) return attr.b() == value;
  }
  return false;
}

// All dims reduced: reduce_all, or no dims named.
bool ReducesAll(const OpNode& op) {
  if (AttrIs(op, "reduce_all", true)) return true;
  for (const proto::Attribute& attr : op.attr()) {
    if (attr.name() == "dim") return attr.ints_size() == 0;
  }
  return true;
}

class Search {
 public:
  explicit Search(const proto::Model& model) {
    for (const OpNode& op : model.op()) {
      for (const proto::SlotVars& out : op.out()) {
        for (const std::string& var : out.var()) writers_[var] = &op;
      }
    }
  }

  // Fills in mean_over and mask; false: no mean makes `var`.
  bool Find(const std::string& var, proto::Loss* loss) {
    std::vector<std::string> next = {var};
    while (!next.empty()) {
      // A value is looked at once, whatever the graph is like.
      const auto found = writers_.find(next.back());
      next.pop_back();
      if (found == writers_.end()) continue;
      const OpNode& op = *found->second;
      writers_.erase(found);
      if (IsMean(op, loss)) return true;
      if (!PassesOn(op.type())) continue;
      for (int i = op.in_size() - 1; i >= 0; --i) {
        const auto& vars = op.in(i).var();
        next.insert(next.end(), vars.rbegin(), vars.rend());
      }
    }
    return false;
  }

 private:
  static bool PassesOn(const std::string& type) {
    static const char* const kTypes[] = {"assign",          "cast",
                                         "elementwise_add", "elementwise_div",
                                         "elementwise_mul", "elementwise_sub",
                                         "reshape2",        "scale",
                                         "squeeze2",        "sum",
                                         "unsqueeze2"};
    return std::find(std::begin(kTypes), std::end(kTypes), type) !=
           std::end(kTypes);
  }

  bool IsMean(const OpNode& op, proto::Loss* loss) const {
    const std::string* const x = First(op, "X");
    if (x == nullptr) return false;
    if (op.type() == "mean" || op.type() == "reduce_mean") {
      loss->set_mean_over(*x);
      return true;
    }
    const std::string* const y = First(op, "Y");
    if (op.type() != "elementwise_div" || y == nullptr) return false;
    const std::string* const sum = SumOf(*x);
    const std::string* const mask = SumOf(*y);
    if (sum == nullptr || mask == nullptr) return false;
    loss->set_mean_over(*sum);
    loss->set_mask(*mask);
    return true;
  }

  // What the value is the sum of; null: it is none.
  const std::string* SumOf(const std::string& var) const {
    const auto found = writers_.find(var);
    if (found == writers_.end() || found->second->type() != "reduce_sum" ||
        !ReducesAll(*found->second)) {
      return nullptr;
    }
    return First(*found->second, "X");
  }

  std::map<std::string, const OpNode*> writers_;
};

}  // namespace

proto::Loss LossOf(const std::string& var, const proto::Model& model) {
  proto::Loss loss;
  loss.set_var(var);
  if (!Search(model).Find(var, &loss)) loss.set_mean_over(var);
  return loss;
}

}  // namespace halftone

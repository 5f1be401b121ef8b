#include "graph/import/loss_count.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/import/model_ops.h"

namespace halftone {
namespace {

using proto::OpNode;

const std::string* First(const OpNode& op, absl::string_view slot) {
  for (const proto::SlotVars& in : op.in()) {
    if (in.slot() == slot && in.var_size() > 0) return &in.var(0);
  }
  return nullptr;
}

// All dims reduced: reduce_all, or no dims named.
bool ReducesAll(const OpNode& op) {
  const proto::Attribute* const dims = AttrOf(op, "dim");
  return BoolOf(op, "reduce_all") || dims == nullptr || dims->ints_size() == 0;
}

using Writers = std::map<std::string, const OpNode*>;

Writers WritersOf(const proto::Model& model) {
  Writers writers;
  for (const OpNode& op : model.op()) {
    for (const proto::SlotVars& out : op.out()) {
      for (const std::string& var : out.var()) writers[var] = &op;
    }
  }
  return writers;
}

// Where to go from an op.
enum class Walk { kToInputs, kPast, kEnd };

// Goes back from a value through the ops that make it, the first input first,
// each once.
template <typename Visit>
void WalkBack(const Writers& writers, const std::string& from,
              const Visit& visit) {
  std::set<const OpNode*> seen;
  std::vector<std::string> next = {from};
  while (!next.empty()) {
    const auto found = writers.find(next.back());
    next.pop_back();
    if (found == writers.end() || !seen.insert(found->second).second) continue;
    const OpNode& op = *found->second;
    const Walk walk = visit(op);
    if (walk == Walk::kEnd) return;
    if (walk == Walk::kPast) continue;
    for (int i = op.in_size() - 1; i >= 0; --i) {
      const auto& vars = op.in(i).var();
      next.insert(next.end(), vars.rbegin(), vars.rend());
    }
  }
}

// A mean that the loss has in it.
struct Mean {
  std::string over;
  std::string mask;         // of a quotient of two plain sums
  std::string denominator;  // of a quotient
};

class Search {
 public:
  explicit Search(const proto::Model& model) : writers_(WritersOf(model)) {}

  // The means that are added to make `var`, the first first.
  std::vector<Mean> Find(const std::string& var) const {
    std::vector<Mean> means;
    WalkBack(writers_, var, [&](const OpNode& op) {
      if (Mean mean; IsMean(op, &mean)) {
        means.push_back(std::move(mean));
        return Walk::kPast;
      }
      return PassesOn(op.type()) ? Walk::kToInputs : Walk::kPast;
    });
    return means;
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

  bool IsMean(const OpNode& op, Mean* mean) const {
    const std::string* const x = First(op, "X");
    if (x == nullptr) return false;
    if (op.type() == "mean" || op.type() == "reduce_mean") {
      mean->over = *x;
      return true;
    }
    const std::string* const y = First(op, "Y");
    if (op.type() != "elementwise_div" || y == nullptr) return false;
    const std::string* const sum = SumOf(*x);
    if (sum == nullptr || !IsCount(*y)) return false;
    mean->over = *sum;
    mean->denominator = *y;
    if (const std::string* const mask = SumOf(*y)) mean->mask = *mask;
    return true;
  }

  // A sum, or what is made of sums and of nothing: max(sum, 1) or the like.
  bool IsCount(const std::string& var) const {
    bool sums = false, others = false;
    WalkBack(writers_, var, [&](const OpNode& op) {
      if (op.type() == "reduce_sum" && ReducesAll(op)) {
        sums = true;
        return Walk::kPast;
      }
      others = others || HasUnmadeInputs(op);
      return others ? Walk::kEnd : Walk::kToInputs;
    });
    return sums && !others;
  }

  // Feeds, parameters.
  bool HasUnmadeInputs(const OpNode& op) const {
    for (const proto::SlotVars& in : op.in()) {
      for (const std::string& name : in.var()) {
        if (writers_.count(name) == 0) return true;
      }
    }
    return false;
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

  const Writers writers_;
};

// Ops that compare; a slot of what is predicted.
struct Comparison {
  absl::string_view op, slot;
};
constexpr Comparison kComparisons[] = {
    {"bce_loss", "X"},
    {"huber_loss", "X"},
    {"kldiv_loss", "X"},
    {"log_loss", "Predicted"},
    {"nll_loss", "X"},
    {"sigmoid_cross_entropy_with_logits", "X"},
    {"softmax_with_cross_entropy", "Logits"},
};

class Prediction {
 public:
  explicit Prediction(const proto::Model& model)
      : loss_(model.loss().var()), writers_(WritersOf(model)) {
    for (const proto::Parameter& param : model.param()) {
      if (param.trainable()) made_.insert(param.name());
    }
    for (const OpNode& op : model.op()) {
      bool made = false;
      for (const proto::SlotVars& in : op.in()) {
        made = made || std::any_of(in.var().begin(), in.var().end(),
                                   [&](const auto& v) { return IsMade(v); });
      }
      if (!made) continue;
      for (const proto::SlotVars& out : op.out()) {
        made_.insert(out.var().begin(), out.var().end());
      }
    }
  }

  std::string Find() const {
    const std::string* compared = nullptr;
    WalkBack(writers_, loss_, [&](const OpNode& op) {
      compared = ComparedBy(op);
      return compared == nullptr ? Walk::kToInputs : Walk::kEnd;
    });
    return compared == nullptr ? "" : *compared;
  }

 private:
  bool IsMade(const std::string& var) const { return made_.count(var) > 0; }

  // Null: nothing.
  const std::string* ComparedBy(const OpNode& op) const {
    for (const Comparison& one : kComparisons) {
      if (one.op != op.type()) continue;
      const std::string* const var = First(op, one.slot);
      return var != nullptr && IsMade(*var) ? var : nullptr;
    }
    // Squared and absolute errors are those of a difference.
    if (op.type() != "square" && op.type() != "abs") return nullptr;
    const std::string* const error = First(op, "X");
    if (error == nullptr) return nullptr;
    const auto found = writers_.find(*error);
    if (found == writers_.end() || found->second->type() != "elementwise_sub") {
      return nullptr;
    }
    const std::string* const x = First(*found->second, "X");
    const std::string* const y = First(*found->second, "Y");
    if (x == nullptr || y == nullptr || IsMade(*x) == IsMade(*y)) {
      return nullptr;
    }
    return IsMade(*x) ? x : y;
  }

  const std::string loss_;
  const Writers writers_;
  std::set<std::string> made_;  // of parameters
};

// Means over different counts, or one over a count that is no plain sum: false
// if that is not so, or the compiler would not take it.
bool AddDenominators(const std::vector<Mean>& means, const proto::Model& model,
                     proto::Loss* loss) {
  const Mean& first = means[0];
  const auto as_first = [&first](const Mean& mean) {
    return mean.mask == first.mask &&
           (!mean.mask.empty() || mean.denominator.empty());
  };
  if (std::all_of(means.begin(), means.end(), as_first)) return false;
  proto::Loss wanted = *loss;
  wanted.set_mean_over(first.over);
  std::set<std::string> seen;
  for (const Mean& mean : means) {
    if (mean.denominator.empty()) {
      if (seen.insert("").second) wanted.set_mean_over(mean.over);
    } else if (seen.insert(mean.denominator).second) {
      wanted.add_denominator(mean.denominator);
    }
  }
  ModelFile file;
  *file.model = model;
  *file.model->mutable_loss() = wanted;
  if (!BuildProgram(file).ok()) return false;
  *loss = std::move(wanted);
  return true;
}

}  // namespace

std::string PredictionOf(const proto::Model& model) {
  return Prediction(model).Find();
}

proto::Loss LossOf(const std::string& var, const proto::Model& model) {
  proto::Loss loss;
  loss.set_var(var);
  const std::vector<Mean> means = Search(model).Find(var);
  if (means.empty()) {
    loss.set_mean_over(var);
    return loss;
  }
  if (AddDenominators(means, model, &loss)) return loss;
  loss.set_mean_over(means[0].over);
  if (!means[0].mask.empty()) loss.set_mask(means[0].mask);
  return loss;
}

}  // namespace halftone

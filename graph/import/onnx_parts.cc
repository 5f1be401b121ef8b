#include "graph/import/onnx_parts.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "graph/import/unneeded.h"

namespace halftone {
namespace {

using proto::OpNode;

constexpr double kCubic = 0.044715;  // of gelu's form with tanh

// The one value of an input slot; empty: there is none.
std::string In(const OpNode& op, absl::string_view slot) {
  for (const proto::SlotVars& in : op.in()) {
    if (in.slot() == slot && in.var_size() == 1) return in.var(0);
  }
  return "";
}

const proto::Attribute* FindAttr(const OpNode& op, absl::string_view name) {
  for (const proto::Attribute& attr : op.attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

double Real(const OpNode& op, absl::string_view name, double otherwise) {
  const proto::Attribute* const attr = FindAttr(op, name);
  return attr == nullptr ? otherwise : attr->f();
}

// As f32 numbers of which one may be the inverse of a rounded one.
bool IsAbout(double number, double expected) {
  return std::abs(number - expected) <= std::ldexp(std::abs(expected), -22);
}

bool SwapsLastTwo(const OpNode& op) {
  const proto::Attribute* const axis = FindAttr(op, "axis");
  if (op.type() != "transpose" || axis == nullptr) return false;
  std::vector<int64_t> order(axis->ints_size());
  if (order.size() < 2) return false;
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return std::equal(order.begin(), order.end(), axis->ints().begin());
}

// scale times the product of values.
struct Factors {
  double scale = 1;
  std::vector<std::string> of;

  // Whether it is one of `count` times `x`.
  bool IsPower(const std::string& x, size_t count) const {
    return of.size() == count &&
           std::count(of.begin(), of.end(), x) == static_cast<int64_t>(count);
  }
};

class Joiner {
 public:
  explicit Joiner(OnnxGraph* graph)
      : graph_(*graph),
        model_(graph->model()),
        wanted_(WantedValues(graph->model())) {
    for (OpNode& op : *model_.mutable_op()) {
      for (const proto::SlotVars& in : op.in()) {
        for (const std::string& name : in.var()) {
          ++readers_[name];
          if (op.type() == "matmul" && in.slot() == "Y") ++as_y_[name];
        }
      }
      for (const proto::SlotVars& out : op.out()) {
        for (const std::string& name : out.var()) makers_[name] = &op;
      }
    }
  }

  void Run() {
    for (OpNode& op : *model_.mutable_op()) {
      if (op.type() == "matmul") TakeTranspose(&op);
      if (op.type() == "elementwise_add") TakeBias(&op);
      JoinActivation(&op);
    }
  }

 private:
  // Null: no op makes it.
  const OpNode* Maker(const std::string& name) const {
    const auto maker = makers_.find(name);
    return maker == makers_.end() ? nullptr : maker->second;
  }

  // Null if it is of another type or its result has other readers, too.
  const OpNode* Inner(const std::string& name, absl::string_view type) const {
    const OpNode* const maker = Maker(name);
    const auto readers = readers_.find(name);
    const bool inner = maker != nullptr && maker->type() == type &&
                       readers != readers_.end() && readers->second == 1 &&
                       !wanted_.contains(name);
    return inner ? maker : nullptr;
  }

  // ---- Products.

  // A transpose that matmuls alone read, as their Y.
  void TakeTranspose(OpNode* op) const {
    const std::string y = In(*op, "Y");
    const OpNode* const maker = Maker(y);
    if (maker == nullptr || !SwapsLastTwo(*maker) || wanted_.contains(y) ||
        readers_.at(y) != as_y_.at(y)) {
      return;
    }
    for (proto::SlotVars& in : *op->mutable_in()) {
      if (in.slot() == "Y") in.set_var(0, In(*maker, "X"));
    }
    for (proto::Attribute& attr : *op->mutable_attr()) {
      if (attr.name() != "trans_y") continue;
      attr.set_b(!attr.b());
      return;
    }
    proto::Attribute& attr = *op->add_attr();
    attr.set_name("trans_y");
    attr.set_b(true);
  }

  // A product plus [N] of its own.
  void TakeBias(OpNode* op) const {
    if (op->attr_size() > 0) return;
    const std::string x = In(*op, "X"), y = In(*op, "Y");
    for (const auto& [product, bias] :
         {std::make_pair(x, y), std::make_pair(y, x)}) {
      const OpNode* const matmul = Inner(product, "matmul");
      if (matmul == nullptr || !In(*matmul, "Bias").empty() ||
          graph_.TypeOf(bias).dims !=
              Dims{graph_.TypeOf(product).dims.back()}) {
        continue;
      }
      OpNode joined = *matmul;
      proto::SlotVars& slot = *joined.add_in();
      slot.set_slot("Bias");
      slot.add_var(bias);
      joined.mutable_out()->Swap(op->mutable_out());
      *op = std::move(joined);
      return;
    }
  }

  // ---- Activations.

  // The value as a product of at most `left` ops, which get less.
  void Expand(const std::string& name, int* left, Factors* factors) const {
    for (const char* type : {"scale", "elementwise_mul", "square", "pow"}) {
      const OpNode* const maker = Inner(name, type);
      if (maker != nullptr && ExpandOp(*maker, left, factors)) return;
    }
    factors->of.push_back(name);
  }

  bool ExpandOp(const OpNode& op, int* left, Factors* factors) const {
    if (*left == 0) return false;
    const std::string x = In(op, "X");
    int times = 1;
    if (op.type() == "scale") {
      if (Real(op, "bias", 0) != 0) return false;
      factors->scale *= Real(op, "scale", 1);
    } else if (op.type() == "square") {
      times = 2;
    } else if (op.type() == "pow") {
      if (Real(op, "factor", 1) != 3) return false;
      times = 3;
    } else if (op.type() != "elementwise_mul" || op.attr_size() > 0) {
      return false;
    }
    --*left;
    for (int i = 0; i < times; ++i) Expand(x, left, factors);
    if (op.type() == "elementwise_mul") Expand(In(op, "Y"), left, factors);
    return true;
  }

  Factors Expanded(const std::string& name) const {
    Factors factors;
    int left = kMostOps;
    Expand(name, &left, &factors);
    return factors;
  }

  // The value is scale * `name` + bias; empty: it is not.
  std::string Shifted(const std::string& name, double* scale,
                      double* bias) const {
    const OpNode* const maker = Inner(name, "scale");
    if (maker == nullptr) return "";
    *scale = Real(*maker, "scale", 1);
    *bias = Real(*maker, "bias", 0);
    return In(*maker, "X");
  }

  void JoinActivation(OpNode* op) const {
    Factors all;
    int left = kMostOps;
    if (!ExpandOp(*op, &left, &all) || all.of.size() != 2) return;
    for (const int i : {0, 1}) {
      const std::string &x = all.of[i], &gate = all.of[1 - i];
      if (JoinGelu(x, gate, all.scale, op)) return;
      if (all.scale == 1 && JoinSwish(x, gate, op)) return;
    }
  }

  // scale * x * gate.
  bool JoinGelu(const std::string& x, const std::string& gate, double scale,
                OpNode* op) const {
    double factor = 0, bias = 0;
    const std::string odd = Shifted(gate, &factor, &bias);
    if (!IsAbout(scale * factor, 0.5) || !IsAbout(scale * bias, 0.5)) {
      return false;
    }
    if (const OpNode* const erf = Inner(odd, "erf")) {
      const Factors inside = Expanded(In(*erf, "X"));
      if (!inside.IsPower(x, 1) || !IsAbout(inside.scale, std::sqrt(0.5))) {
        return false;
      }
      Replace("gelu", x, op);
      return true;
    }
    const OpNode* const tanh = Inner(odd, "tanh");
    if (tanh == nullptr || !IsCubic(In(*tanh, "X"), x)) return false;
    Replace("gelu", x, op);
    op->add_attr()->set_name("approximate");
    op->mutable_attr(0)->set_s("tanh");
    return true;
  }

  // sqrt(2 / pi) * (x + 0.044715 x^3), or with x * (1 + 0.044715 x^2).
  bool IsCubic(const std::string& name, const std::string& x) const {
    const Factors inside = Expanded(name);
    if (!IsAbout(inside.scale, std::sqrt(2 / std::acos(-1.0)))) return false;
    for (const std::string& one : inside.of) {
      const OpNode* const sum = Inner(one, "elementwise_add");
      if (sum != nullptr && inside.of.size() == 1 && sum->attr_size() == 0) {
        const std::string first = In(*sum, "X"), second = In(*sum, "Y");
        const Factors cube = Expanded(first == x ? second : first);
        return (first == x || second == x) && cube.IsPower(x, 3) &&
               IsAbout(cube.scale, kCubic);
      }
      double scale = 0, bias = 0;
      const std::string square = Shifted(one, &scale, &bias);
      if (square.empty() || inside.of.size() != 2 || !IsAbout(bias, 1) ||
          inside.of[inside.of[0] == one ? 1 : 0] != x) {
        continue;
      }
      const Factors product = Expanded(square);
      return product.IsPower(x, 2) && IsAbout(scale * product.scale, kCubic);
    }
    return false;
  }

  bool JoinSwish(const std::string& x, const std::string& gate,
                 OpNode* op) const {
    const OpNode* const sigmoid = Inner(gate, "sigmoid");
    if (sigmoid == nullptr) return false;
    const Factors inside = Expanded(In(*sigmoid, "X"));
    if (!inside.IsPower(x, 1)) return false;
    Replace("swish", x, op);
    if (inside.scale == 1) return true;
    op->add_attr()->set_name("beta");
    op->mutable_attr(0)->set_f(inside.scale);
    return true;
  }

  // The op that makes what `op` made.
  static void Replace(absl::string_view type, const std::string& x,
                      OpNode* op) {
    op->set_type(std::string(type));
    op->clear_attr();
    op->clear_in();
    op->add_in()->set_slot("X");
    op->mutable_in(0)->add_var(x);
  }

  // More than the longest form has.
  static constexpr int kMostOps = 8;

  const OnnxGraph& graph_;
  proto::Model& model_;
  const absl::flat_hash_set<std::string> wanted_;
  absl::flat_hash_map<std::string, OpNode*> makers_;
  // Before anything was joined: how many slots of ops, how many matmuls' Y.
  absl::flat_hash_map<std::string, int> readers_, as_y_;
};

}  // namespace

void JoinParts(OnnxGraph* const graph) { Joiner(graph).Run(); }

}  // namespace halftone

#include "graph/import/onnx_parts.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/import/model_ops.h"
#include "graph/import/onnx_norm_parts.h"

namespace halftone {
namespace {

using proto::OpNode;

constexpr double kCubic = 0.044715;  // of gelu's form with tanh

// As f32 numbers of which one may be the inverse of a rounded one.
bool IsAbout(double number, double expected) {
  return std::abs(number - expected) <= std::ldexp(std::abs(expected), -22);
}

bool SwapsLastTwo(const OpNode& op) {
  const proto::Attribute* const axis = AttrOf(op, "axis");
  if (axis == nullptr) return false;
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
      : graph_(*graph), model_(graph->model()), ops_(&graph->model()) {
    for (const OpNode& op : model_.op()) {
      if (op.type() == "matmul") ++as_y_[InputOf(op, "Y")];
    }
  }

  absl::Status Run() {
    auto& ops = *model_.mutable_op();
    const int count = ops.size();
    for (int i = 0; i < count; ++i) {
      OpNode* const op = &ops[i];
      if (op->type() == "matmul") TakeTranspose(op);
      TakeBias(op);
      if (op->type() == "reshape") JoinGroupNorm(op);
      HT_RETURN_IF_ERROR(TakeAffine(op));
      JoinActivation(op);
    }
    // What was added reads nothing that an op makes.
    std::rotate(ops.pointer_begin(), ops.pointer_begin() + count,
                ops.pointer_end());
    return absl::OkStatus();
  }

 private:
  // ---- Products.

  // A transpose that matmuls alone read, as their Y.
  void TakeTranspose(OpNode* op) const {
    const std::string y = InputOf(*op, "Y");
    const OpNode* const maker = ops_.Inner(y, "transpose", as_y_.at(y));
    if (maker == nullptr || !SwapsLastTwo(*maker)) return;
    for (proto::SlotVars& in : *op->mutable_in()) {
      if (in.slot() == "Y") in.set_var(0, InputOf(*maker, "X"));
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
    for (const auto& [product, bias] :
         ModelOps::Operands(*op, "elementwise_add")) {
      const OpNode* const matmul = ops_.Inner(product, "matmul");
      if (matmul == nullptr || !InputOf(*matmul, "Bias").empty() ||
          graph_.TypeOf(bias).dims !=
              Dims{graph_.TypeOf(product).dims.back()}) {
        continue;
      }
      return BecomeWith(*matmul, "Bias", bias, op);
    }
  }

  // ---- Norms of groups of channels.

  // The only op that reads it, if it is of that type and the value is not
  // wanted; else null.
  const OpNode* Reader(const std::string& name, absl::string_view type) const {
    const OpNode* const reader = ops_.Reader(name);
    return reader != nullptr && reader->type() == type ? reader : nullptr;
  }

  // What the op, a sum or a product, combines `made` with, if that is a number
  // for each channel; empty: it is not.
  std::string PerChannel(const OpNode& op, const std::string& made) const {
    const std::string x = InputOf(op, "X"), y = InputOf(op, "Y");
    const std::string& other = x == made ? y : x;
    Dims dims = graph_.TypeOf(made).dims;
    dims.erase(dims.begin());
    std::fill(dims.begin() + 1, dims.end(), Dim(1));
    const bool is_one = op.attr_size() == 0 &&
                        graph_.TypeOf(other).dims == dims &&
                        graph_.TypeOf(other).dtype == DType::kF32;
    return is_one ? other : "";
  }

  // Whether each channel is multiplied and added to by numbers of its own.
  bool HasAffine(const std::string& normalized) const {
    const OpNode* const mul = Reader(normalized, "elementwise_mul");
    if (mul == nullptr || PerChannel(*mul, normalized).empty()) return false;
    const std::string& product = mul->out(0).var(0);
    const OpNode* const add = Reader(product, "elementwise_add");
    return add != nullptr && !PerChannel(*add, product).empty();
  }

  // Whether all of an input is this number. Exporters write it as a parameter
  // where they have each channel's own behind the norm.
  bool IsAll(const OpNode& norm, absl::string_view slot, double number,
             const std::string& normalized) const {
    const std::string value = InputOf(norm, slot);
    if (value.empty()) return true;
    return graph_.UniformOf(value) == number &&
           (!graph_.Trains(value) || HasAffine(normalized));
  }

  // From [N, groups, ...] back to [N, C, ...] behind an instance norm.
  void JoinGroupNorm(OpNode* op) const {
    const OpNode* const norm = ops_.Inner(InputOf(*op, "X"), "instance_norm");
    if (norm == nullptr) return;
    const std::string grouped = InputOf(*norm, "X");
    const OpNode* const group = ops_.Inner(grouped, "reshape");
    if (group == nullptr) return;
    const std::string& out = op->out(0).var(0);
    const std::string x = InputOf(*group, "X");
    const Dims dims = graph_.TypeOf(out).dims;
    const Dims in_groups = graph_.TypeOf(grouped).dims;
    if (dims.size() < 2 || graph_.TypeOf(x).dims != dims ||
        in_groups[0] != dims[0] || !dims[1].is_constant() ||
        !in_groups[1].is_constant() ||
        dims[1].coefficient() % in_groups[1].coefficient() != 0 ||
        !IsAll(*norm, "Scale", 1, out) || !IsAll(*norm, "Bias", 0, out)) {
      return;
    }
    BecomeOp("group_norm", x, op);
    op->mutable_out(0)->set_slot("Y");
    *op->mutable_attr() = norm->attr();
    proto::Attribute& groups = *op->add_attr();
    groups.set_name("groups");
    groups.set_i(in_groups[1].coefficient());
  }

  // A group norm times a number for each channel, or plus one.
  absl::Status TakeAffine(OpNode* op) const {
    const bool scales = op->type() == "elementwise_mul";
    if (!scales && op->type() != "elementwise_add") return absl::OkStatus();
    for (const char* slot : {"X", "Y"}) {
      const std::string made = InputOf(*op, slot);
      const OpNode* const norm = ops_.Inner(made, "group_norm");
      if (norm == nullptr || norm->out_size() != 1 ||
          !InputOf(*norm, "Bias").empty() ||
          (scales && !InputOf(*norm, "Scale").empty())) {
        continue;
      }
      const std::string other = PerChannel(*op, made);
      if (other.empty()) continue;
      HT_ASSIGN_OR_RETURN(const std::string list, AsList(other));
      if (list.empty()) continue;
      BecomeWith(*norm, scales ? "Scale" : "Bias", list, op);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // Of [C, 1, ...]: [C], of which it may have been made; empty: it is made
  // otherwise.
  absl::StatusOr<std::string> AsList(const std::string& value) const {
    const Dims list = {graph_.TypeOf(value).dims[0]};
    if (graph_.TypeOf(value).dims == list) return value;
    if (const OpNode* const maker = ops_.Maker(value)) {
      const std::string from =
          maker->type() == "reshape" ? InputOf(*maker, "X") : "";
      return !from.empty() && graph_.TypeOf(from).dims == list ? from : "";
    }
    const std::string made = graph_.Unused(absl::StrCat(value, ".channels"));
    OpNode reshape;
    BecomeOp("reshape", value, &reshape);
    reshape.add_out()->set_slot("Out");
    reshape.mutable_out(0)->add_var(made);
    HT_RETURN_IF_ERROR(graph_.AddOp(std::move(reshape),
                                    {{"shape", std::vector<int64_t>{-1}}}));
    return made;
  }

  // ---- Activations.

  // The value as a product of at most `left` ops, which get less.
  void Expand(const std::string& name, int* left, Factors* factors) const {
    for (const char* type : {"scale", "elementwise_mul", "square", "pow"}) {
      const OpNode* const maker = ops_.Inner(name, type);
      if (maker != nullptr && ExpandOp(*maker, left, factors)) return;
    }
    factors->of.push_back(name);
  }

  bool ExpandOp(const OpNode& op, int* left, Factors* factors) const {
    if (*left == 0) return false;
    const std::string x = InputOf(op, "X");
    int times = 1;
    if (op.type() == "scale") {
      if (RealOf(op, "bias", 0) != 0) return false;
      factors->scale *= RealOf(op, "scale", 1);
    } else if (op.type() == "square") {
      times = 2;
    } else if (op.type() == "pow") {
      if (RealOf(op, "factor", 1) != 3) return false;
      times = 3;
    } else if (op.type() != "elementwise_mul" || op.attr_size() > 0) {
      return false;
    }
    --*left;
    for (int i = 0; i < times; ++i) Expand(x, left, factors);
    if (op.type() == "elementwise_mul") Expand(InputOf(op, "Y"), left, factors);
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
    const OpNode* const maker = ops_.Inner(name, "scale");
    if (maker == nullptr) return "";
    *scale = RealOf(*maker, "scale", 1);
    *bias = RealOf(*maker, "bias", 0);
    return InputOf(*maker, "X");
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
    if (const OpNode* const erf = ops_.Inner(odd, "erf")) {
      const Factors inside = Expanded(InputOf(*erf, "X"));
      if (!inside.IsPower(x, 1) || !IsAbout(inside.scale, std::sqrt(0.5))) {
        return false;
      }
      BecomeOp("gelu", x, op);
      return true;
    }
    const OpNode* const tanh = ops_.Inner(odd, "tanh");
    if (tanh == nullptr || !IsCubic(InputOf(*tanh, "X"), x)) return false;
    BecomeOp("gelu", x, op);
    op->add_attr()->set_name("approximate");
    op->mutable_attr(0)->set_s("tanh");
    return true;
  }

  // sqrt(2 / pi) * (x + 0.044715 x^3), or with x * (1 + 0.044715 x^2).
  bool IsCubic(const std::string& name, const std::string& x) const {
    const Factors inside = Expanded(name);
    if (!IsAbout(inside.scale, std::sqrt(2 / std::acos(-1.0)))) return false;
    for (const std::string& one : inside.of) {
      const OpNode* const sum = ops_.Inner(one, "elementwise_add");
      if (sum != nullptr && inside.of.size() == 1 && sum->attr_size() == 0) {
        const std::string first = InputOf(*sum, "X"),
                          second = InputOf(*sum, "Y");
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
    const OpNode* const sigmoid = ops_.Inner(gate, "sigmoid");
    if (sigmoid == nullptr) return false;
    const Factors inside = Expanded(InputOf(*sigmoid, "X"));
    if (!inside.IsPower(x, 1)) return false;
    BecomeOp("swish", x, op);
    if (inside.scale == 1) return true;
    op->add_attr()->set_name("beta");
    op->mutable_attr(0)->set_f(inside.scale);
    return true;
  }

  // More than the longest form has.
  static constexpr int kMostOps = 8;

  OnnxGraph& graph_;
  proto::Model& model_;
  const ModelOps ops_;
  absl::flat_hash_map<std::string, int> as_y_;  // matmuls, at first
};

}  // namespace

absl::Status JoinParts(OnnxGraph* const graph) {
  HT_RETURN_IF_ERROR(Joiner(graph).Run());
  JoinRmsNorms(graph);
  return absl::OkStatus();
}

}  // namespace halftone

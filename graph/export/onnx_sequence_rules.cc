// Attention and recurrent layers, at test time.
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/export/onnx_rules.h"
#include "graph/ops/recurrent_mode.h"

namespace halftone {
namespace onnx_export {
namespace {

// ---- Attention: opset 17 has no op for it.

// [B, S, heads, D] of as many heads as Q has.
std::string OfAllHeads(SourceOp& op, absl::string_view slot) {
  const std::string x = Wide(op, slot);
  const Dim &heads = op.DimsOf("Q")[2], &own = op.DimsOf(slot)[2];
  if (own == heads) return x;
  IntList shared(heads.coefficient());
  for (size_t i = 0; i < shared.size(); ++i) {
    shared[i] =
        static_cast<int64_t>(i) * own.coefficient() / heads.coefficient();
  }
  return op.Node("Gather")
      .In(x)
      .In(op.builder().Ints(shared))
      .Attr("axis", int64_t{2})
      .Made();
}

// [T, S]: whether a row may look at a column; empty if lengths vary.
std::string Causal(SourceOp& op) {
  const Dim &rows = op.DimsOf("Q")[1], &columns = op.DimsOf("K")[1];
  if (!rows.is_constant() || !columns.is_constant()) {
    op.Refuse("causal attention over a length that varies");
    return "";
  }
  const int64_t t = rows.coefficient(), s = columns.coefficient();
  std::string allowed;
  for (int64_t row = 0; row < t; ++row) {
    for (int64_t c = 0; c < s; ++c) allowed.push_back(c <= row ? 1 : 0);
  }
  return op.builder().Constant(DType::kBool, {t, s}, allowed);
}

// In f32. What a row may not look at gets the least score, and no weight at
// all, so that a row that may look at nothing gives 0.
void Attention(SourceOp& op, const Rule&) {
  op.ExpectUnread("Out");
  const std::string q = op.Transposed(Wide(op, "Q"), {0, 2, 1, 3});
  const std::string k = op.Transposed(OfAllHeads(op, "K"), {0, 2, 3, 1});
  const std::string v = op.Transposed(OfAllHeads(op, "V"), {0, 2, 1, 3});
  const double width = static_cast<double>(op.DimsOf("Q")[3].coefficient());
  const double scale = op.Float("scale");
  std::string scores =
      op.Make("Mul", op.Make("MatMul", q, k),
              op.builder().Number(scale == 0 ? 1 / std::sqrt(width) : scale,
                                  DType::kF32));
  std::string allowed = op.Bool("causal") ? Causal(op) : "";
  if (op.Has("Mask") && op.dtype("Mask") == DType::kBool) {
    const std::string mask = op.In("Mask");
    allowed = allowed.empty() ? mask : op.Make("And", allowed, mask);
  } else if (op.Has("Mask")) {
    scores = op.Make("Add", scores, Wide(op, "Mask"));
  }
  const auto where_allowed = [&](const std::string& x, double otherwise) {
    if (allowed.empty()) return x;
    return op.Node("Where")
        .In(allowed)
        .In(x)
        .In(op.builder().Number(otherwise, DType::kF32))
        .Made();
  };
  const std::string masked =
      where_allowed(scores, std::numeric_limits<float>::lowest());
  const std::string weights = where_allowed(
      op.Node("Softmax").In(masked).Attr("axis", int64_t{-1}).Made(), 0);
  FromWide(op, op.Transposed(op.Make("MatMul", weights, v), {0, 2, 1, 3}),
           "Out");
}

// ---- Recurrent layers: a node for each layer, in f32.

struct Mode {
  absl::string_view node;
  // Of ONNX's gates, which of ours each is.
  IntList gates;
  std::vector<std::string> activations;  // of a direction; empty: the usual
};

Mode ModeOf(const std::string& mode) {
  if (mode == "LSTM") return {"LSTM", {0, 3, 1, 2}, {}};
  if (mode == "GRU") return {"GRU", {1, 0, 2}, {}};
  return {"RNN", {0}, {mode == "RNN_RELU" ? "Relu" : "Tanh"}};
}

class Recurrent {
 public:
  explicit Recurrent(SourceOp& op)
      : op_(op),
        mode_(ModeOf(op.String("mode"))),
        hidden_(op.Int("hidden_size")),
        layers_(op.Int("num_layers")),
        directions_(op.Bool("is_bidirec") ? 2 : 1),
        biases_(op.Count("WeightList") == 4 * layers_ * directions_) {}

  void Convert() {
    std::string x = Wide(op_, "Input");
    std::vector<std::vector<std::string>> states(op_.Outputs("State"));
    if (op_.Has("SequenceLength")) {
      lengths_ = op_.Cast(op_.In("SequenceLength"), op_.dtype("SequenceLength"),
                          DType::kI32);
    }
    for (int64_t layer = 0; layer < layers_; ++layer) {
      const std::vector<std::string> made = Layer(layer, x);
      x = Joined(made[0]);
      for (size_t i = 0; i < states.size(); ++i) {
        states[i].push_back(made[1 + i]);
      }
    }
    FromWide(op_, x, "Out");
    for (size_t i = 0; i < states.size(); ++i) {
      NodeMaker concat = op_.Node("Concat");
      for (const std::string& state : states[i]) concat.In(state);
      concat.Attr("axis", int64_t{0}).Out("State", static_cast<int>(i));
    }
  }

 private:
  // The results of the layer's node: Y, Y_h and of an LSTM Y_c.
  std::vector<std::string> Layer(int64_t layer, const std::string& x) {
    using ops::RecurrentWeight;
    NodeMaker node = op_.Node(mode_.node);
    node.In(x)
        .In(Weights(layer, {RecurrentWeight::kInput}))
        .In(Weights(layer, {RecurrentWeight::kState}))
        .In(biases_ ? Weights(layer, {RecurrentWeight::kInputBias,
                                      RecurrentWeight::kStateBias})
                    : "")
        .In(lengths_);
    const int states = op_.Count("PreState");
    for (int i = 0; i < states; ++i) node.In(PreState(i, layer));
    node.Attr("hidden_size", hidden_)
        .Attr("direction", directions_ == 2 ? "bidirectional" : "forward");
    if (mode_.node == "GRU") node.Attr("linear_before_reset", int64_t{1});
    if (!mode_.activations.empty()) {
      node.Attr("activations",
                std::vector<std::string>(directions_, mode_.activations[0]));
    }
    return node.MadeAll(mode_.node == "LSTM" ? 3 : 2);
  }

  // [directions, rows, ...]: gates in ONNX's order, one kind after the other.
  std::string Weights(int64_t layer,
                      const std::vector<ops::RecurrentWeight>& kinds) {
    IntList order;
    for (const int64_t gate : mode_.gates) {
      for (int64_t unit = 0; unit < hidden_; ++unit) {
        order.push_back(gate * hidden_ + unit);
      }
    }
    std::vector<std::string> of_directions;
    for (int64_t d = 0; d < directions_; ++d) {
      std::vector<std::string> parts;
      for (const ops::RecurrentWeight kind : kinds) {
        const int64_t at = ops::WeightPosition(layers_ * directions_,
                                               layer * directions_ + d, kind);
        parts.push_back(
            op_.Node("Gather")
                .In(op_.Cast(op_.In("WeightList", static_cast<int>(at)),
                             op_.dtype("WeightList"), DType::kF32))
                .In(op_.builder().Ints(order))
                .Attr("axis", int64_t{0})
                .Made());
      }
      of_directions.push_back(op_.Unsqueezed(Concat(parts), {0}));
    }
    return Concat(of_directions);
  }

  // Along axis 0.
  std::string Concat(const std::vector<std::string>& parts) {
    if (parts.size() == 1) return parts[0];
    NodeMaker concat = op_.Node("Concat");
    for (const std::string& part : parts) concat.In(part);
    return concat.Attr("axis", int64_t{0}).Made();
  }

  std::string PreState(int i, int64_t layer) {
    const std::string all = op_.In("PreState", i);
    if (layers_ == 1) return all;
    Builder& builder = op_.builder();
    return op_.Node("Slice")
        .In(all)
        .In(builder.Ints({layer * directions_}))
        .In(builder.Ints({(layer + 1) * directions_}))
        .In(builder.Ints({0}))
        .Made();
  }

  // [T, directions, B, H] as [T, B, directions * H].
  std::string Joined(const std::string& y) {
    const Dims& x = op_.DimsOf("Input");
    const Dim hidden(hidden_), directions(directions_);
    const std::string batch_first = op_.Transposed(y, {0, 2, 1, 3});
    return op_.Reshaped(batch_first, {x[0], x[1], directions, hidden},
                        {x[0], x[1], Dim(directions_ * hidden_)});
  }

  SourceOp& op_;
  Mode mode_;
  int64_t hidden_, layers_, directions_;
  bool biases_;
  std::string lengths_;
};

void Rnn(SourceOp& op, const Rule&) { Recurrent(op).Convert(); }

}  // namespace

const std::vector<Rule>& SequenceRules() {
  static const auto& rules = *new std::vector<Rule>{
      {"rnn_eval", Rnn},
      {"scaled_dot_product_attention_infer", Attention},
  };
  return rules;
}

}  // namespace onnx_export
}  // namespace halftone

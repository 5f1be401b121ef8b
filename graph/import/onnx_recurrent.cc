// RNN, GRU and LSTM. ONNX keeps both directions of a layer in one tensor and
// its gates in another order than PyTorch and Paddle: parameters stay as they
// are in the file, and ops of the program cut them into what `rnn` takes.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/import/onnx_ops.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

// Inputs by number.
enum { kX, kW, kR, kB, kLengths, kHidden, kCell, kPeepholes };

// Unrolled ones are ops for every step.
constexpr int64_t kMostSteps = 512;

struct Layer {
  std::string mode;
  // Which of ONNX's gates each of ours is.
  std::vector<int> gates;
  int64_t hidden = 0, directions = 1;
  bool backwards = false;  // one direction that reads from the end
  bool samples_first = false;
  bool unrolled = false;  // `rnn` has none like it
};

// [first, last) of a dim.
std::string Part(OnnxNode& node, const std::string& x, int64_t axis,
                 int64_t first, int64_t last, bool drop) {
  OnnxOp op = node.Op("slice");
  op.In("Input", x).Attr("axes", IntList{axis});
  op.Attr("starts", IntList{first}).Attr("ends", IntList{last});
  if (drop) op.Attr("decrease_axis", IntList{axis});
  return op.Made();
}

// [first, last) of dim 0; without that dim if `drop`.
std::string Rows(OnnxNode& node, const std::string& x, int64_t first,
                 int64_t last, bool drop) {
  return Part(node, x, 0, first, last, drop);
}

// `x`, the gates of which begin at row `first`, with gates in our order.
std::string InOrder(OnnxNode& node, const Layer& layer, const std::string& x,
                    int64_t first) {
  const auto rows = [&](int64_t gate) {
    const int64_t from = first + gate * layer.hidden;
    return Rows(node, x, from, from + layer.hidden, /*drop=*/false);
  };
  if (layer.gates.size() == 1) return rows(0);
  OnnxOp join = node.Op("concat");
  for (const int gate : layer.gates) join.In("X", rows(gate));
  return join.Attr("axis", int64_t{0}).Made();
}

// Of an input [directions, rows, ...]: one direction's.
std::string Direction(OnnxNode& node, const std::string& x, int64_t d) {
  return Rows(node, x, d, d + 1, /*drop=*/true);
}

void AddWeights(OnnxNode& node, const Layer& layer, OnnxOp& rnn) {
  const std::string w = node.In(kW), r = node.In(kR);
  const std::string b = node.Has(kB) ? node.In(kB) : "";
  const int64_t rows = static_cast<int64_t>(layer.gates.size()) * layer.hidden;
  for (int64_t d = 0; d < layer.directions && !node.failed(); ++d) {
    rnn.In("WeightList", InOrder(node, layer, Direction(node, w, d), 0));
    rnn.In("WeightList", InOrder(node, layer, Direction(node, r, d), 0));
  }
  if (b.empty()) return;
  for (int64_t d = 0; d < layer.directions && !node.failed(); ++d) {
    const std::string own = Direction(node, b, d);
    rnn.In("WeightList", InOrder(node, layer, own, 0));
    rnn.In("WeightList", InOrder(node, layer, own, rows));
  }
}

// Functions other than the usual ones are refused.
void CheckActivations(OnnxNode& node, const std::vector<std::string>& usual,
                      Layer* layer) {
  std::vector<std::string> found = node.Strings("activations");
  if (found.empty()) return;
  for (std::string& one : found) one = absl::AsciiStrToLower(one);
  std::vector<std::string> expected, relu;
  for (int64_t d = 0; d < layer->directions; ++d) {
    expected.insert(expected.end(), usual.begin(), usual.end());
    relu.push_back("relu");
  }
  if (found == expected) return;
  if (layer->mode == "RNN_TANH" && found == relu) {
    layer->mode = "RNN_RELU";
    return;
  }
  node.Refuse("attribute activations",
              absl::StrCat(": expected ", absl::StrJoin(expected, " "),
                           ", found ", absl::StrJoin(found, " ")));
}

void ReadDirection(OnnxNode& node, Layer* layer) {
  const std::string direction = node.String("direction", "forward");
  layer->directions = direction == "bidirectional" ? 2 : 1;
  layer->backwards = direction == "reverse";
  const bool known =
      layer->directions == 2 || layer->backwards || direction == "forward";
  if (!known) {
    node.Refuse("attribute direction", absl::StrCat(" is ", direction));
  }
  if (layer->backwards && node.Has(kLengths)) {
    node.Refuse("direction reverse", " with sequence_lens is not taken");
  }
}

// Its first two dims the other way round, if samples come first.
std::string Swapped(OnnxNode& node, const Layer& layer, const std::string& x) {
  if (!layer.samples_first || node.failed()) return x;
  return node.Op("transpose").In("X", x).Attr("axis", IntList{1, 0, 2}).Made();
}

bool IsZero(OnnxNode& node, int input) {
  const OnnxConstant* const known = node.Known(input);
  return known != nullptr && known->Uniform() == 0.0;
}

// Names of what `rnn` gives: Out, then states.
std::vector<std::string> Run(OnnxNode& node, const Layer& layer) {
  std::string x = Swapped(node, layer, node.In(kX));
  const auto flip = [&node](const std::string& value) {
    return node.Op("flip").In("X", value).Attr("axis", IntList{0}).Made();
  };
  if (layer.backwards && !node.failed()) x = flip(x);
  OnnxOp rnn = node.Op("rnn");
  rnn.In("Input", x);
  const bool lstm = layer.mode == "LSTM";
  const bool has_states = (node.Has(kHidden) && !IsZero(node, kHidden)) ||
                          (lstm && node.Has(kCell) && !IsZero(node, kCell));
  if (has_states && (!node.Has(kHidden) || (lstm && !node.Has(kCell)))) {
    node.Refuse("one first state of two", " is not taken");
  }
  if (has_states && !node.failed()) {
    rnn.In("PreState", Swapped(node, layer, node.In(kHidden)));
    if (lstm) rnn.In("PreState", Swapped(node, layer, node.In(kCell)));
  }
  AddWeights(node, layer, rnn);
  if (node.Has(kLengths)) rnn.In("SequenceLength", node.In(kLengths));
  rnn.Attr("mode", layer.mode).Attr("hidden_size", layer.hidden);
  if (layer.directions == 2) rnn.Attr("is_bidirec", true);
  std::vector<std::string> made = lstm ? rnn.MadeAll({"Out", "State", "State"})
                                       : rnn.MadeAll({"Out", "State"});
  if (layer.backwards && !node.failed()) made[0] = flip(made[0]);
  return made;
}

// ---- Step by step: what `rnn` cannot have, since a gate multiplies the state
// before its product, or the cell.

std::string Of(OnnxNode& node, const char* type, const std::string& x) {
  return node.Op(type).In("X", x).Made();
}
std::string Of(OnnxNode& node, const char* type, const std::string& x,
               const std::string& y) {
  return node.Op(type).In("X", x).In("Y", y).Made();
}
std::string Times(OnnxNode& node, const std::string& x, const std::string& w) {
  return node.Op("matmul").In("X", x).In("Y", w).Attr("trans_y", true).Made();
}

struct State {
  std::string hidden, cell;  // [B, H]; only LSTMs have the other
};

// One direction of a layer.
class Steps {
 public:
  // `x` [T, B, I]; `there` [B, T], where a sample has steps; empty: it has all.
  Steps(OnnxNode& node, const Layer& layer, int64_t direction,
        const std::string& x, const std::string& there)
      : node_(node), hidden_(layer.hidden), there_(there) {
    const int64_t rows = static_cast<int64_t>(layer.gates.size()) * hidden_;
    sums_ = Times(node, x, Direction(node, node.In(kW), direction));
    if (!node.Has(kB)) return;
    const std::string b = Direction(node, node.In(kB), direction);
    const std::string both =
        Of(node, "elementwise_add", Rows(node, b, 0, rows, false),
           Rows(node, b, rows, 2 * rows, false));
    sums_ = Of(node, "elementwise_add", sums_, both);
  }
  virtual ~Steps() = default;

  // [B, H] of zeros.
  std::string Zeros() {
    return Of(node_, "fill_zeros_like",
              Columns(Rows(node_, sums_, 0, 1, /*drop=*/true), 0, 1));
  }

  // Steps `state` on; returns the step's output.
  std::string Step(int64_t t, const std::string& zeros, State* state) {
    const std::string row = Rows(node_, sums_, t, t + 1, /*drop=*/true);
    const State next = Next(row, *state);
    if (there_.empty()) return (*state = next).hidden;
    const std::string is_there =
        Part(node_, there_, /*axis=*/1, t, t + 1, /*drop=*/false);
    state->hidden = Where(is_there, next.hidden, state->hidden);
    if (!next.cell.empty()) {
      state->cell = Where(is_there, next.cell, state->cell);
    }
    return Where(is_there, next.hidden, zeros);
  }

 protected:
  // `row`: the step's sums of inputs and biases, [B, gates x H].
  virtual State Next(const std::string& row, const State& state) = 0;

  // Of [B, n x H].
  std::string Columns(const std::string& x, int64_t first, int64_t last) {
    return Part(node_, x, 1, first * hidden_, last * hidden_, /*drop=*/false);
  }
  std::string Add(const std::string& x, const std::string& y) {
    return Of(node_, "elementwise_add", x, y);
  }
  std::string Mul(const std::string& x, const std::string& y) {
    return Of(node_, "elementwise_mul", x, y);
  }
  std::string Sigmoid(const std::string& x) { return Of(node_, "sigmoid", x); }
  std::string Tanh(const std::string& x) { return Of(node_, "tanh", x); }

  OnnxNode& node_;
  const int64_t hidden_;

 private:
  std::string Where(const std::string& condition, const std::string& x,
                    const std::string& y) {
    return node_.Op("where")
        .In("Condition", condition)
        .In("X", x)
        .In("Y", y)
        .Made();
  }

  const std::string there_;
  std::string sums_;  // of inputs and biases, [T, B, gates x H]
};

// A GRU whose reset gate multiplies the state before its product.
class ResetFirst : public Steps {
 public:
  ResetFirst(OnnxNode& node, const Layer& layer, int64_t direction,
             const std::string& x, const std::string& there)
      : Steps(node, layer, direction, x, there) {
    const std::string r = Direction(node, node.In(kR), direction);
    gates_ = Rows(node, r, 0, 2 * hidden_, /*drop=*/false);
    candidate_ = Rows(node, r, 2 * hidden_, 3 * hidden_, /*drop=*/false);
  }

 private:
  State Next(const std::string& row, const State& state) override {
    const std::string gates =
        Sigmoid(Add(Columns(row, 0, 2), Times(node_, state.hidden, gates_)));
    const std::string kept = Mul(Columns(gates, 1, 2), state.hidden);
    const std::string fresh =
        Tanh(Add(Columns(row, 2, 3), Times(node_, kept, candidate_)));
    const std::string old =
        Mul(Columns(gates, 0, 1),
            Of(node_, "elementwise_sub", state.hidden, fresh));
    return {Add(fresh, old), ""};
  }

  std::string gates_, candidate_;  // weights [2 H, H] and [H, H]
};

// An LSTM whose gates see the cell: those of input and forgetting the one
// before, that of the output the new one.
class Peepholes : public Steps {
 public:
  Peepholes(OnnxNode& node, const Layer& layer, int64_t direction,
            const std::string& x, const std::string& there)
      : Steps(node, layer, direction, x, there),
        weights_(Direction(node, node.In(kR), direction)),
        holes_(Direction(node, node.In(kPeepholes), direction)) {}

 private:
  // Gates lie as input, output, forget, cell.
  State Next(const std::string& row, const State& state) override {
    const std::string sums = Add(row, Times(node_, state.hidden, weights_));
    const auto gate = [&](int64_t i, const std::string& cell) {
      const std::string hole =
          Rows(node_, holes_, i * hidden_, (i + 1) * hidden_, /*drop=*/false);
      return Sigmoid(Add(Columns(sums, i, i + 1), Mul(cell, hole)));
    };
    const std::string in = gate(0, state.cell), kept = gate(2, state.cell);
    const std::string fresh = Mul(in, Tanh(Columns(sums, 3, 4)));
    const std::string cell = Add(Mul(kept, state.cell), fresh);
    return {Mul(gate(1, cell), Tanh(cell)), cell};
  }

  const std::string weights_, holes_;  // [4 H, H] and [3 H]
};

// [B, T]: whether step t is one of the sample's.
std::string There(OnnxNode& node, int64_t steps) {
  if (!node.Has(kLengths)) return "";
  const std::string lengths = node.In(kLengths);
  const std::string ends =
      node.Op("unsqueeze").In("X", lengths).Attr("axes", IntList{-1}).Made();
  const std::string places = node.Op("arange")
                                 .Attr("end", static_cast<double>(steps))
                                 .Attr("dtype", node.TypeOf(lengths).dtype)
                                 .Made();
  return Of(node, "greater_than", ends, places);
}

std::unique_ptr<Steps> StepsOf(OnnxNode& node, const Layer& layer, int64_t d,
                               const std::string& x, const std::string& there) {
  if (layer.mode == "GRU") {
    return std::make_unique<ResetFirst>(node, layer, d, x, there);
  }
  return std::make_unique<Peepholes>(node, layer, d, x, there);
}

void Unroll(OnnxNode& node, const Layer& layer, const Dim& count) {
  const int64_t steps = count.is_constant() ? count.coefficient() : 0;
  const bool lstm = layer.mode == "LSTM";
  if (steps < 1 || steps > kMostSteps) {
    node.Refuse(lstm ? "peepholes" : "attribute linear_before_reset = 0",
                absl::StrCat(": taken for 1 to ", kMostSteps, " steps"));
    return;
  }
  const std::string x = Swapped(node, layer, node.In(kX));
  const std::string there = There(node, steps);
  const auto first = [&](int input) {
    const bool given = node.Has(input) && !IsZero(node, input);
    return given ? Swapped(node, layer, node.In(input)) : "";
  };
  const std::string hidden = first(kHidden), cell = lstm ? first(kCell) : "";
  OnnxOp outputs = node.Op("stack"), states = node.Op("stack");
  OnnxOp cells = node.Op("stack");
  for (int64_t d = 0; d < layer.directions && !node.failed(); ++d) {
    const std::unique_ptr<Steps> direction = StepsOf(node, layer, d, x, there);
    const std::string zeros = direction->Zeros();
    const auto from = [&](const std::string& given) {
      return given.empty() ? zeros : Direction(node, given, d);
    };
    State state = {from(hidden), lstm ? from(cell) : ""};
    std::vector<std::string> made(steps);
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = d == 1 || layer.backwards ? steps - 1 - i : i;
      made[t] = direction->Step(t, zeros, &state);
    }
    OnnxOp join = node.Op("stack");
    for (const std::string& one : made) join.In("X", one);
    outputs.In("X", join.Attr("axis", int64_t{0}).Made("Y"));
    states.In("X", state.hidden);
    if (lstm) cells.In("X", state.cell);
  }
  std::string y = outputs.Attr("axis", int64_t{1}).Made("Y");
  if (layer.samples_first) {
    const IntList axes = {2, 0, 1, 3};
    y = node.Op("transpose").In("X", y).Attr("axis", axes).Made();
  }
  node.Same(0, y);
  const auto last = [&](OnnxOp& op) {
    return Swapped(node, layer, op.Attr("axis", int64_t{0}).Made("Y"));
  };
  node.Same(1, last(states));
  if (lstm) node.Same(2, last(cells));
}

void Convert(OnnxNode& node, Layer layer,
             const std::vector<std::string>& usual) {
  layer.hidden = node.Int("hidden_size", 0);
  if (layer.hidden < 1) node.Refuse("attribute hidden_size", " is missing");
  layer.samples_first = node.Int("layout", 0) != 0;
  ReadDirection(node, &layer);
  CheckActivations(node, usual, &layer);
  if (node.Has(kPeepholes) && !IsZero(node, kPeepholes)) {
    layer.unrolled = true;
  }
  const Dims x = node.Type(kX).dims;
  if (x.size() != 3) node.Refuse("input 0", ": expected [T, B, I]");
  if (node.failed()) return;
  if (layer.unrolled) {
    Unroll(node, layer, x[layer.samples_first ? 1 : 0]);
    return;
  }
  const std::vector<std::string> made = Run(node, layer);
  if (node.failed()) return;
  // [T, B, directions x H] as [T, directions, B, H], or [B, T, directions, H].
  const int steps = layer.samples_first ? 1 : 0;
  std::string y = node.Reshaped(
      made[0],
      {x[steps], x[1 - steps], Dim(layer.directions), Dim(layer.hidden)});
  const IntList axes =
      layer.samples_first ? IntList{1, 0, 2, 3} : IntList{0, 2, 1, 3};
  y = node.Op("transpose").In("X", y).Attr("axis", axes).Made();
  node.Same(0, y);
  for (size_t i = 1; i < made.size(); ++i) {
    node.Same(static_cast<int>(i), Swapped(node, layer, made[i]));
  }
}

void Lstm(OnnxNode& node, const Rule&) {
  if (node.Int("input_forget", 0) != 0) {
    node.Refuse("attribute input_forget", " = 1 is not taken");
  }
  Convert(node, {"LSTM", {0, 2, 3, 1}}, {"sigmoid", "tanh", "tanh"});
}

void Gru(OnnxNode& node, const Rule&) {
  Layer layer = {"GRU", {1, 0, 2}};
  layer.unrolled = node.Int("linear_before_reset", 0) == 0;
  Convert(node, layer, {"sigmoid", "tanh"});
}

void Rnn(OnnxNode& node, const Rule&) {
  Convert(node, {"RNN_TANH", {0}}, {"tanh"});
}

}  // namespace

const std::vector<OnnxRule>& OnnxRecurrentRules() {
  static const auto& rules =
      *new std::vector<OnnxRule>{{"GRU", Gru}, {"LSTM", Lstm}, {"RNN", Rnn}};
  return rules;
}

}  // namespace halftone

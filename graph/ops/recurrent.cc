// Recurrent layers, all layers and directions in one op, as Paddle has them:
// steps come first. A net whose samples come first has transposes around it,
// which are copies of little beside the products, and may cancel out.
//
// What the gradient reads is kept (Gates, Carried), as cuDNN and Paddle do:
// computing it again would be all of the products of the steps once more.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/recurrent_mode.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

// Sizes of a bound op. A cell is one direction of one layer.
struct Sizes {
  RecurrentMode mode;
  int64_t layers, directions, hidden;
  Dim steps, batch, input;

  int64_t cells() const { return layers * directions; }
  Dim width(int64_t layer) const {
    return layer == 0 ? input : Dim(directions * hidden);
  }
  Dims state() const { return {Dim(cells()), batch, Dim(hidden)}; }
  Dims out() const { return {steps, batch, Dim(directions * hidden)}; }
  Dims gates() const {
    return {Dim(cells()), steps, batch, Dim(KeptGates(mode) * hidden)};
  }
  Dims carried() const {
    return {Dim(States(mode) * cells()), Dim(steps.coefficient() + 1), batch,
            Dim(hidden)};
  }
  // Of each member of WeightList, with biases.
  std::vector<Dims> weights() const {
    std::vector<Dims> all;
    const Dim gates(WeightGates(mode) * hidden);
    for (int64_t cell = 0; cell < cells(); ++cell) {
      all.push_back({gates, width(cell / directions)});
      all.push_back({gates, Dim(hidden)});
    }
    all.resize(4 * cells(), {gates});
    return all;
  }
};

absl::Status ExpectAtLeastOne(const InferContext& c, absl::string_view attr) {
  if (c.Int(attr) >= 1 && c.Int(attr) <= 1 << 20) return absl::OkStatus();
  return AttrMismatch(c, attr, "1 to 1048576");
}

absl::StatusOr<Sizes> ReadSizes(const InferContext& c) {
  HT_RETURN_IF_ERROR(
      ExpectWord(c, "mode", {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}));
  HT_RETURN_IF_ERROR(ExpectAtLeastOne(c, "num_layers"));
  HT_RETURN_IF_ERROR(ExpectAtLeastOne(c, "hidden_size"));
  HT_RETURN_IF_ERROR(ExpectRank(c, "Input", 3, "[T, B, I]: steps first"));
  const Dims& x = c.Input("Input").dims;
  Sizes sizes = {*RecurrentModeOf(c.Str("mode")),
                 c.Int("num_layers"),
                 c.Bool("is_bidirec") ? 2 : 1,
                 c.Int("hidden_size"),
                 x[0],
                 x[1],
                 x[2]};
  if (!x[0].is_constant() || x[0].coefficient() < 1) {
    return SlotMismatch(c, "Input", "[T, B, I] with a constant T, 1 or more",
                        "steps come first, samples second: transpose it");
  }
  const int64_t input = c.Int("input_size");
  if (input != 0 && x[2] != Dim(input)) {
    return AttrMismatch(c, "input_size",
                        absl::StrCat("0 or the last dim of Input, ",
                                     c.Print(c.Input("Input"))));
  }
  return sizes;
}

absl::Status CheckWeights(const InferContext& c, const Sizes& sizes) {
  const auto weights = c.InputList("WeightList");
  const std::vector<Dims> dims = sizes.weights();
  const size_t without = dims.size() / 2;
  if (weights.size() != dims.size() && weights.size() != without) {
    return c.Error("slot WeightList: expected ", dims.size(),
                   " values (weight_ih and weight_hh of ", sizes.cells(),
                   " layers and directions, then bias_ih and bias_hh), or ",
                   without, " without biases, found ", weights.size());
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].dims != dims[i]) {
      return MemberMismatch(c, "WeightList", static_cast<int>(i),
                            PrintDims(c, dims[i]),
                            "rows are gates x hidden_size");
    }
  }
  return absl::OkStatus();
}

absl::Status ExpectStates(const InferContext& c, absl::string_view what,
                          size_t found, const Sizes& sizes) {
  const int64_t states = States(sizes.mode);
  if (found == 0 || static_cast<int64_t>(found) == states) {
    return absl::OkStatus();
  }
  return c.Error("slot ", what, ": expected no value or ", states, " (",
                 states == 2 ? "hidden state and cell" : "hidden state",
                 "), found ", found);
}

// Sizes of an op whose inputs of the forward op are as they should be.
absl::StatusOr<Sizes> CheckRecurrent(const InferContext& c) {
  HT_ASSIGN_OR_RETURN(const Sizes sizes, ReadSizes(c));
  HT_RETURN_IF_ERROR(CheckWeights(c, sizes));
  HT_RETURN_IF_ERROR(ExpectDims(c, "SequenceLength", {sizes.batch},
                                "[B]: one for each sample"));
  HT_RETURN_IF_ERROR(ExpectRange(c, "dropout_prob", 0, 1));
  if (c.Float("dropout_prob") == 1) {
    return AttrMismatch(c, "dropout_prob", "less than 1",
                        "all elements would be dropped");
  }
  return sizes;
}

absl::Status InferForward(InferContext& c) {
  HT_ASSIGN_OR_RETURN(const Sizes sizes, CheckRecurrent(c));
  const auto states = c.InputList("PreState");
  HT_RETURN_IF_ERROR(ExpectStates(c, "PreState", states.size(), sizes));
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].dims != sizes.state()) {
      return MemberMismatch(c, "PreState", static_cast<int>(i),
                            PrintDims(c, sizes.state()),
                            "[layers x directions, B, hidden_size]");
    }
  }
  const int results = c.OutputCount("State");
  HT_RETURN_IF_ERROR(ExpectStates(c, "State", results, sizes));
  c.SetOutput("Out", sizes.out());
  for (int i = 0; i < results; ++i) c.SetOutput("State", sizes.state(), i);
  if (c.schema().FindOutput("Gates") < 0) return absl::OkStatus();
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Seed", "Step", "FirstSample"}));
  c.SetOutput("Gates", sizes.gates());
  c.SetOutput("Carried", sizes.carried());
  return absl::OkStatus();
}

absl::Status InferGrad(InferContext& c) {
  HT_ASSIGN_OR_RETURN(const Sizes sizes, CheckRecurrent(c));
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Seed", "Step", "FirstSample"}));
  HT_RETURN_IF_ERROR(ExpectDims(c, "Gates", sizes.gates(), "rnn's"));
  HT_RETURN_IF_ERROR(ExpectDims(c, "Carried", sizes.carried(), "rnn's"));
  HT_RETURN_IF_ERROR(ExpectDims(c, "OutGrad", sizes.out(), "those of Out"));
  for (const char* slot : {"HiddenGrad", "CellGrad"}) {
    HT_RETURN_IF_ERROR(ExpectDims(c, slot, sizes.state(), "those of State"));
  }
  c.SetOutput("InputGrad", c.Input("Input").dims);
  const int states = c.OutputCount("PreStateGrad");
  HT_RETURN_IF_ERROR(ExpectStates(c, "PreStateGrad", states, sizes));
  for (int i = 0; i < states; ++i) {
    c.SetOutput("PreStateGrad", sizes.state(), i);
  }
  const auto weights = c.InputList("WeightList");
  const int count = c.OutputCount("WeightListGrad");
  if (count != 0 && count != static_cast<int>(weights.size())) {
    return c.Error("slot WeightListGrad: expected no value or ", weights.size(),
                   ", one per member of WeightList, found ", count);
  }
  for (int i = 0; i < count; ++i) {
    c.SetOutput("WeightListGrad", weights[i].dims, i);
  }
  return absl::OkStatus();
}

bool WantsAny(const GradContext& g, absl::string_view slot) {
  for (int i = 0; i < g.InputCount(slot); ++i) {
    if (g.Wants(slot, i)) return true;
  }
  return false;
}

// Names the gradient of each member of the slot; false if none is wanted.
bool AskForAll(const GradContext& g, absl::string_view slot,
               OpBuilder& builder) {
  if (!WantsAny(g, slot)) return false;
  for (int i = 0; i < g.InputCount(slot); ++i) {
    builder.Out(absl::StrCat(slot, "Grad"), g.GradName(slot, i));
  }
  return true;
}

void GiveAll(GradContext& g, absl::string_view slot, OpId op) {
  const Op& grad = g.block().op(op);
  const int position = grad.schema->FindOutput(absl::StrCat(slot, "Grad"));
  for (int i = 0; i < g.InputCount(slot); ++i) {
    if (g.Wants(slot, i)) g.SetGrad(slot, grad.outputs.slot(position)[i], i);
  }
}

absl::Status GradRnn(GradContext& g) {
  for (const char* slot : {"Gates", "Carried"}) {
    if (!g.OutGrad(slot).valid()) continue;
    return ModelError(g.block().name(g.op()), " (rnn): slot ", slot,
                      ": expected no gradient, found one; the loss must not "
                      "depend on what is kept for the gradient");
  }
  OpBuilder builder = g.Emit("rnn_grad").AttrsOf(g.op());
  for (const char* slot : {"Input", "WeightList", "SequenceLength", "Seed",
                           "Step", "FirstSample"}) {
    for (int i = 0; i < g.InputCount(slot); ++i) {
      builder.In(slot, g.Input(slot, i));
    }
  }
  builder.In("Gates", g.Output("Gates")).In("Carried", g.Output("Carried"));
  builder.In("OutGrad", g.OutGrad("Out"));
  const int state = g.op().schema->FindOutput("State");
  const int states = static_cast<int>(g.op().outputs.slot(state).size());
  const char* const kStates[] = {"HiddenGrad", "CellGrad"};
  for (int i = 0; i < states; ++i) {
    builder.In(kStates[i], g.OutGrad("State", i));
  }
  if (g.Wants("Input")) builder.Out("InputGrad", g.GradName("Input"));
  const bool state_grads = AskForAll(g, "PreState", builder);
  const bool weight_grads = AskForAll(g, "WeightList", builder);
  HT_ASSIGN_OR_RETURN(const OpId op, builder.Build());
  if (g.Wants("Input")) g.SetGrad("Input", g.block().op(op).out(0));
  if (state_grads) GiveAll(g, "PreState", op);
  if (weight_grads) GiveAll(g, "WeightList", op);
  return absl::OkStatus();
}

// Two operations for each weight of a matrix, step and sample.
Dim RecurrentFlops(const Block& block, const Op& op) {
  const Dims& x = block.type(op.in(0)).dims;
  const int slot = op.schema->FindInput("WeightList");
  int64_t weights = 0;
  for (const ValueId weight : op.inputs.slot(slot)) {
    const TensorType& type = block.type(weight);
    if (type.rank() == 2) weights += type.Elements().coefficient();
  }
  return Dim(2 * weights) * x[0] * x[1];
}
// Of the data and of the weights.
Dim GradFlops(const Block& block, const Op& op) {
  return Dim(2) * RecurrentFlops(block, op);
}

constexpr char kMode[] =
    "LSTM (gates i f g o), GRU (r z n; the reset gate multiplies W_hn h + "
    "b_hn), RNN_TANH or RNN_RELU";

OpSchema RnnSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema(name);
  schema.Doc(absl::StrCat(doc, kClassOfAutocast))
      .TypeVar("T", kFloatTypes)
      .TypeVar("TLength", {DType::kI32, DType::kI64})
      .In("Input", "T", "[T, B, I]: steps, samples, channels; T is constant");
  return schema;
}

OpSchema& AddWeights(OpSchema& schema) {
  return schema
      .In("WeightList", "T",
          "weight_ih [gates x H, I] and weight_hh [gates x H, H] of each "
          "layer's directions, then bias_ih and bias_hh [gates x H] of each; "
          "or no biases",
          kList)
      .In("SequenceLength", "TLength",
          "[B]: steps of each sample; behind them Out is 0 and states stand "
          "still; none: T",
          kOptional);
}

OpSchema& AddAttrs(OpSchema& schema) {
  return schema.RequiredAttr("mode", AttrKind::kString, kMode)
      .RequiredAttr("hidden_size", AttrKind::kInt, "H: units of a layer")
      .Attr("num_layers", int64_t{1}, "each reads what the one before gives")
      .Attr("is_bidirec", false,
            "a second direction of each layer reads from the end; the "
            "directions of Out lie side by side")
      .Attr("input_size", int64_t{0}, "I; 0: what Input has")
      .Attr("dropout_prob", 0.0,
            "probability with which an element is dropped between layers")
      .Accumulate(DType::kF32)
      .Amp(AmpClass::kWhite);
}

OpSchema& AddStream(OpSchema& schema) {
  return schema
      .StreamAttr(
          "which stream of random numbers; 0 in a model: from the op's name")
      .NoMerge();
}

OpSchema& AddRandom(OpSchema& schema) {
  return schema.ImplicitIn("Seed", "i64", kSeed)
      .ImplicitIn("Step", "i64", kAttempted)
      .ImplicitIn("FirstSample", "i64", kFirstSample);
}

OpSchema& AddResults(OpSchema& schema) {
  return schema.Out("Out", "T", "[T, B, directions x H]: of the last layer")
      .Out("State", "f32",
           "[layers x directions, B, H]: the last hidden state, and of an LSTM "
           "the last cell",
           kList | kOptional)
      .Infer(InferForward)
      .Costs(Work::kProduct, RecurrentFlops);
}

OpSchema Forward(absl::string_view name, absl::string_view doc) {
  OpSchema schema = RnnSchema(name, doc);
  schema.In("PreState", "f32",
            "[layers x directions, B, H]: the first hidden state, and of an "
            "LSTM the first cell; none: 0",
            kList | kOptional | kKeepF32);
  AddWeights(schema);
  return schema;
}

}  // namespace

void RegisterRecurrent(OpRegistry& registry) {
  OpSchema rnn =
      Forward("rnn",
              "Recurrent layers over the steps of each sample. Gates are added "
              "up in f32, cells are f32; a hidden state is rounded to T.");
  AddResults(AddRandom(rnn))
      .Out("Gates", "f32",
           "[layers x directions, T, B, kept x H], for the gradient: gates as "
           "they are used; of a GRU also W_hn h + b_hn")
      .Out("Carried", "f32",
           "[states x layers x directions, T + 1, B, H], for the gradient: "
           "hidden states, then cells, between the steps");
  AddStream(AddAttrs(rnn)).Grad(GradRnn).ToTest("rnn_eval");
  registry.Add(std::move(rnn));

  OpSchema eval =
      Forward("rnn_eval", "rnn at test time: nothing dropped, nothing kept.");
  AddAttrs(AddResults(eval)).NoGrad().Internal();
  registry.Add(std::move(eval));

  OpSchema grad = RnnSchema(
      "rnn_grad",
      "The gradients of rnn. Those of gates are rounded to T where products "
      "are made of it: on GPUs, and of bf16 on CPUs with instructions for it.");
  AddRandom(AddWeights(grad))
      .In("Gates", "f32", "of rnn")
      .In("Carried", "f32", "of rnn")
      .In("OutGrad", "T", "dims of Out; none: 0", kOptional)
      .In("HiddenGrad", "f32", "dims of State; none: 0", kOptional)
      .In("CellGrad", "f32", "dims of State; none: 0", kOptional)
      .Out("InputGrad", "T", "dims of Input", kOptional)
      .Out("PreStateGrad", "f32", "one per member of PreState",
           kList | kOptional)
      .Out("WeightListGrad", "T", "one per member of WeightList",
           kList | kOptional)
      .Infer(InferGrad)
      .Costs(Work::kProduct, GradFlops);
  AddStream(AddAttrs(grad)).NoGrad().Internal();
  registry.Add(std::move(grad));
}

}  // namespace ops
}  // namespace halftone

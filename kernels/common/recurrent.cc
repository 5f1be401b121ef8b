#include "kernels/common/recurrent.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace kernels {
namespace {

Matrix Dense(int64_t rows, int64_t columns) {
  Matrix m;
  m.rows = rows;
  m.columns = columns;
  m.row_stride = columns;
  return m;
}
Matrix Transposed(int64_t rows, int64_t columns) {
  Matrix m = Dense(columns, rows);
  std::swap(m.rows, m.columns);
  std::swap(m.row_stride, m.column_stride);
  return m;
}

class Places {
 public:
  int64_t Take(int64_t elements, int64_t bytes) {
    const int64_t at = end_;
    constexpr int64_t kAlignment = RecurrentWorkspace::kAlignment;
    end_ += (elements * bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  int64_t Floats(int64_t elements) { return Take(elements, sizeof(float)); }
  int64_t end() const { return end_; }

 private:
  int64_t end_ = 0;
};

// What both ways have.
RecurrentWorkspace Shared(const RecurrentShape& s, int64_t compute,
                          Places& places) {
  RecurrentWorkspace w = {};
  const bool converts = SizeOf(s.dtype) != compute;
  const auto take = [&](bool needed, int64_t elements) {
    return places.Take(needed ? elements : 0, compute);
  };
  w.input = take(converts, s.rows() * s.input);
  w.input_weight = take(converts, s.gate_columns() * s.widest());
  w.state_weight = take(converts, s.gate_columns() * s.hidden);
  w.layer = take(converts || s.layers > 1, s.rows() * s.out_columns());
  w.low = take(compute != sizeof(float), s.cell_states());
  w.product = places.Floats(s.batch * s.gate_columns());
  return w;
}

}  // namespace

RecurrentShape::RecurrentShape(const BoundOp& op)
    : mode(*ops::RecurrentModeOf(op.Str("mode"))),
      layers(op.Int("num_layers")),
      directions(op.Bool("is_bidirec") ? 2 : 1),
      hidden(op.Int("hidden_size")),
      steps(op.Input("Input").dims[0]),
      batch(op.Input("Input").dims[1]),
      input(op.Input("Input").dims[2]),
      weight_gates(ops::WeightGates(mode)),
      kept(ops::KeptGates(mode)),
      states(ops::States(mode)),
      biases(op.InputCount("WeightList") == 4 * cells()),
      dtype(op.Input("Input").dtype) {}

int64_t RecurrentShape::widest() const {
  return layers > 1 ? std::max(input, out_columns()) : input;
}

Product ProductOf(const RecurrentShape& s, RecurrentProduct which,
                  int64_t layer) {
  const int64_t rows = s.rows(), gates = s.gate_columns();
  const int64_t width = s.width(layer);
  switch (which) {
    case RecurrentProduct::kGates: {
      Matrix out = Dense(rows, gates);
      out.row_stride = s.kept_columns();
      return {Dense(rows, width), Transposed(width, gates), out};
    }
    case RecurrentProduct::kInputGrad:
      return {Dense(rows, gates), Dense(gates, width), Dense(rows, width)};
    case RecurrentProduct::kInputWeightGrad:
      return {Transposed(gates, rows), Dense(rows, width), Dense(gates, width)};
    case RecurrentProduct::kStep:
      return {Dense(s.batch, s.hidden), Transposed(s.hidden, gates),
              Dense(s.batch, gates)};
    case RecurrentProduct::kStepGrad:
      return {Dense(s.batch, gates), Dense(gates, s.hidden),
              Dense(s.batch, s.hidden)};
    case RecurrentProduct::kStateWeightGrad:
      return {Transposed(gates, rows), Dense(rows, s.hidden),
              Dense(gates, s.hidden)};
    case RecurrentProduct::kCount:
      break;
  }
  HT_CHECK(false, "no such product");
}

bool IsOfWeight(RecurrentProduct which) {
  return which == RecurrentProduct::kInputWeightGrad ||
         which == RecurrentProduct::kStateWeightGrad;
}

bool IsRepeated(RecurrentProduct which) {
  return which == RecurrentProduct::kStep ||
         which == RecurrentProduct::kStepGrad;
}

bool DependsOnInput(RecurrentProduct which) {
  return which == RecurrentProduct::kGates ||
         which == RecurrentProduct::kInputGrad ||
         which == RecurrentProduct::kInputWeightGrad;
}

RecurrentSlots RecurrentSlots::Forward(const BoundOp& op) {
  const bool keeps = op.schema().FindOutput("Gates") >= 0;
  RecurrentSlots at = Shared(op);
  at.pre_state = op.InputIndex("PreState");
  at.out = op.OutputIndex("Out");
  at.state = op.OutputIndex("State");
  at.gates = keeps ? op.OutputIndex("Gates") : -1;
  at.carried = keeps ? op.OutputIndex("Carried") : -1;
  return at;
}

RecurrentSlots RecurrentSlots::Backward(const BoundOp& op) {
  RecurrentSlots at = Shared(op);
  at.gates = op.InputIndex("Gates");
  at.carried = op.InputIndex("Carried");
  at.out_grad = op.InputIndex("OutGrad");
  at.hidden_grad = op.InputIndex("HiddenGrad");
  at.cell_grad = op.InputIndex("CellGrad");
  at.input_grad = op.OutputIndex("InputGrad");
  at.pre_state_grad = op.OutputIndex("PreStateGrad");
  at.weight_grads = op.OutputIndex("WeightListGrad");
  return at;
}

RecurrentSlots RecurrentSlots::Shared(const BoundOp& op) {
  RecurrentSlots at;
  at.input = op.InputIndex("Input");
  at.weights = op.InputIndex("WeightList");
  at.lengths = op.InputIndex("SequenceLength");
  at.wide_lengths =
      at.lengths >= 0 && op.Input("SequenceLength").dtype == DType::kI64;
  return at;
}

RecurrentDraws::RecurrentDraws(const BoundOp& op) {
  if (!op.KnowsAttr("stream")) return;
  dropout = functors::DropoutOp::Of(op.Float("dropout_prob"));
  stream = static_cast<uint32_t>(op.Int("stream"));
  seed = op.InputIndex("Seed");
}

RecurrentWorkspace RecurrentWorkspace::Forward(const RecurrentShape& s,
                                               bool keeps, int64_t compute) {
  Places places;
  RecurrentWorkspace w = Shared(s, compute, places);
  w.bias = places.Floats(s.kept_columns());
  w.gates = places.Floats(keeps ? 0 : s.cell_gates());
  w.carried = places.Floats(keeps ? 0 : s.states * s.cells() * s.cell_states());
  w.bytes = places.end();
  return w;
}

RecurrentWorkspace RecurrentWorkspace::Backward(const RecurrentShape& s,
                                                int64_t compute) {
  Places places;
  RecurrentWorkspace w = Shared(s, compute, places);
  const bool low = s.dtype != DType::kF32,
             converts = SizeOf(s.dtype) != compute;
  w.out_grad = places.Floats(low ? s.rows() * s.out_columns() : 0);
  w.layer_grad = places.Floats(2 * s.rows() * s.widest());
  w.part = places.Floats(s.directions > 1 ? s.rows() * s.widest() : 0);
  w.passed = places.Floats(s.state());
  w.cell_grad = places.Floats(s.states > 1 ? s.state() : 0);
  w.input_side = places.Take(s.rows() * s.gate_columns(), compute);
  w.state_side = s.mode == ops::RecurrentMode::kGru
                     ? places.Take(s.rows() * s.gate_columns(), compute)
                     : w.input_side;
  w.sums = places.Floats(s.gate_columns());
  w.weight_grad = places.Floats(
      converts ? s.gate_columns() * std::max(s.widest(), s.hidden) : 0);
  w.bytes = places.end();
  return w;
}

}  // namespace kernels
}  // namespace halftone

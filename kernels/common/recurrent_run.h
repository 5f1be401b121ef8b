// The course of rnn and rnn_grad, the same on every device. A Device has
//
//   using Compute = ...;                   what products read, called C below
//   static constexpr bool kConverts;       whether the op's type T may be
//                                          another than C
//   void ForEach(int64_t rows, int64_t columns, body);   body.At(row)(column)
//   absl::Status Multiply(which, layer, const C* x, const C* y, float* out);
//   absl::Status Repeat(which, const C* y);   the y of the next such products
//   absl::Status MultiplyToWeight(which, layer, x, y, T* out, void* scratch);
//   const C* Load(const void* t, int64_t n, void* scratch);       of type T
//   const float* LoadFloats(const void* t, int64_t n, void* scratch);
//   void Store(const float* from, int64_t n, void* t);
//   void StoreResult(const C* from, int64_t n, void* t);
//   void Round(float* x, int64_t n);       to T where C is wider
//   void SumColumns(const C* x, int64_t rows, int64_t columns, float* out);
//   void Copy(void* to, const void* from, int64_t bytes);
//   void Zero(void* to, int64_t bytes);
//   void Dropout(int64_t layer, E* x);     of a layer's result, in place
#ifndef HALFTONE_KERNELS_COMMON_RECURRENT_RUN_H_
#define HALFTONE_KERNELS_COMMON_RECURRENT_RUN_H_

#include <type_traits>

#include "absl/status/status.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/recurrent.h"
#include "kernels/functors/recurrent.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {

template <typename Device>
class RecurrentRun {
 public:
  using C = typename Device::Compute;
  using Which = RecurrentProduct;

  RecurrentRun(const RecurrentShape& shape, const RecurrentSlots& slots,
               const RecurrentWorkspace& workspace, const Buffers& buffers,
               Device& device)
      : s_(shape), at_(slots), w_(workspace), b_(buffers), device_(device) {
    if (at_.lengths >= 0) {
      lengths_ = {b_.inputs[at_.lengths], at_.wide_lengths};
    }
  }

  absl::Status Forward() {
    const bool keeps = at_.gates >= 0;
    gates_ =
        keeps ? static_cast<float*>(b_.outputs[at_.gates]) : Floats(w_.gates);
    carried_ = keeps ? static_cast<float*>(b_.outputs[at_.carried])
                     : Floats(w_.carried);
    const C* x = Input();
    for (int64_t layer = 0; layer < s_.layers; ++layer) {
      for (int64_t d = 0; d < s_.directions; ++d) {
        HT_RETURN_IF_ERROR(ForwardCell(layer, d, x));
      }
      const bool last = layer == s_.layers - 1;
      void* out = b_.outputs[at_.out];
      C* result = last && !Converts() ? static_cast<C*>(out) : Cs(w_.layer);
      LayerResult(layer, result);
      if (last && Converts()) {
        device_.StoreResult(result, s_.rows() * s_.out_columns(), out);
      }
      if (!last) device_.Dropout(layer, result);
      x = result;
    }
    return absl::OkStatus();
  }

  absl::Status Backward() {
    // They are read only.
    gates_ = static_cast<float*>(const_cast<void*>(b_.inputs[at_.gates]));
    carried_ = static_cast<float*>(const_cast<void*>(b_.inputs[at_.carried]));
    const float* out_grad = nullptr;
    if (at_.out_grad >= 0) {
      out_grad =
          device_.LoadFloats(b_.inputs[at_.out_grad],
                             s_.rows() * s_.out_columns(), At(w_.out_grad));
    }
    for (int64_t layer = s_.layers - 1; layer >= 0; --layer) {
      const C* x = LayerInput(layer);
      float* input_grad = InputGrad(layer);
      for (int64_t d = 0; d < s_.directions; ++d) {
        HT_RETURN_IF_ERROR(BackwardCell(layer, d, x, out_grad, input_grad));
      }
      if (layer > 0) device_.Dropout(layer - 1, input_grad);
      out_grad = input_grad;
    }
    if (at_.input_grad >= 0 && s_.dtype != DType::kF32) {
      device_.Store(out_grad, s_.rows() * s_.input, b_.outputs[at_.input_grad]);
    }
    return absl::OkStatus();
  }

 private:
  char* At(int64_t offset) const {
    return static_cast<char*>(b_.workspace) + offset;
  }
  float* Floats(int64_t offset) const {
    return reinterpret_cast<float*>(At(offset));
  }
  C* Cs(int64_t offset) const { return reinterpret_cast<C*>(At(offset)); }
  bool Converts() const {
    return Device::kConverts && s_.dtype != DTypeOf<C>();
  }
  static constexpr bool kLow = !std::is_same<C, float>::value;

  const C* Input() {
    return device_.Load(b_.inputs[at_.input], s_.rows() * s_.input,
                        At(w_.input));
  }
  int64_t WeightAt(int64_t cell, ops::RecurrentWeight which) const {
    return ops::WeightPosition(s_.cells(), cell, which);
  }
  const C* Weight(int64_t cell, ops::RecurrentWeight which, int64_t n,
                  int64_t scratch) {
    return device_.Load(b_.inputs[at_.weights + WeightAt(cell, which)], n,
                        At(scratch));
  }
  const C* InputWeight(int64_t layer, int64_t cell) {
    return Weight(cell, ops::RecurrentWeight::kInput,
                  s_.gate_columns() * s_.width(layer), w_.input_weight);
  }
  const C* StateWeight(int64_t cell) {
    return Weight(cell, ops::RecurrentWeight::kState,
                  s_.gate_columns() * s_.hidden, w_.state_weight);
  }

  // ---- Where states are: slot t + 1 follows step t in reading order, slot t
  // comes before it; the reverse direction goes the other way.
  float* States(int64_t state, int64_t cell) const {
    return carried_ + (state * s_.cells() + cell) * s_.cell_states();
  }
  int64_t StepOf(int64_t d, int64_t k) const {
    return d == 0 ? k : s_.steps - 1 - k;
  }
  int64_t Before(int64_t d, int64_t t) const {
    return (d == 0 ? t : t + 1) * s_.state();
  }
  int64_t After(int64_t d, int64_t t) const {
    return (d == 0 ? t + 1 : t) * s_.state();
  }
  int64_t First(int64_t d) const { return d == 0 ? 0 : s_.steps * s_.state(); }
  int64_t Last(int64_t d) const { return d == 0 ? s_.steps * s_.state() : 0; }

  // ---- Forward.

  absl::Status ForwardCell(int64_t layer, int64_t d, const C* x) {
    const int64_t cell = layer * s_.directions + d;
    const bool keeps = at_.gates >= 0;
    float* gates = gates_ + (keeps ? cell * s_.cell_gates() : 0);
    JoinBiases(cell);
    HT_RETURN_IF_ERROR(device_.Multiply(Which::kGates, layer, x,
                                        InputWeight(layer, cell), gates));
    FirstStates(d, cell);
    const C* weight = StateWeight(cell);
    HT_RETURN_IF_ERROR(device_.Repeat(Which::kStep, weight));
    for (int64_t k = 0; k < s_.steps; ++k) {
      const int64_t t = StepOf(d, k);
      const functors::ForwardStep<C> step = StepAt(d, cell, t, gates);
      const C* before = kLow ? Cs(w_.low) + Before(d, t)
                             : reinterpret_cast<const C*>(step.h_before);
      HT_RETURN_IF_ERROR(device_.Multiply(Which::kStep, layer, before, weight,
                                          Floats(w_.product)));
      RunStep<functors::ForwardBody>(step);
      device_.Round(step.h_after, s_.state());
    }
    StoreStates(d, cell);
    return absl::OkStatus();
  }

  functors::ForwardStep<C> StepAt(int64_t d, int64_t cell, int64_t t,
                                  float* gates) const {
    functors::ForwardStep<C> step = {};
    step.hidden = s_.hidden;
    step.weight_gates = s_.weight_gates;
    step.kept = s_.kept;
    step.bias = Floats(w_.bias);
    step.product = Floats(w_.product);
    step.gates = gates + t * s_.batch * s_.kept_columns();
    step.h_before = States(0, cell) + Before(d, t);
    step.h_after = States(0, cell) + After(d, t);
    if (s_.states > 1) {
      step.c_before = States(1, cell) + Before(d, t);
      step.c_after = States(1, cell) + After(d, t);
    }
    step.low = kLow ? Cs(w_.low) + After(d, t) : nullptr;
    step.lengths = lengths_;
    step.step = t;
    return step;
  }

  template <template <typename, typename> class Body, typename Step>
  void RunStep(const Step& step) {
    using ops::RecurrentMode;
    switch (s_.mode) {
      case RecurrentMode::kLstm:
        return EachUnit(Body<functors::LstmCell, C>(step));
      case RecurrentMode::kGru:
        return EachUnit(Body<functors::GruCell, C>(step));
      case RecurrentMode::kTanh:
        return EachUnit(Body<functors::PlainCell<false>, C>(step));
      case RecurrentMode::kRelu:
        return EachUnit(Body<functors::PlainCell<true>, C>(step));
    }
  }
  template <typename Body>
  void EachUnit(const Body& body) {
    device_.ForEach(s_.batch, s_.hidden, body);
  }

  void JoinBiases(int64_t cell) {
    float* bias = Floats(w_.bias);
    if (!s_.biases) {
      device_.Zero(bias, s_.kept_columns() * int64_t{sizeof(float)});
      return;
    }
    const int64_t n = s_.gate_columns();
    functors::JoinBiases<C> join = {};
    join.input =
        Weight(cell, ops::RecurrentWeight::kInputBias, n, w_.input_weight);
    join.state =
        Weight(cell, ops::RecurrentWeight::kStateBias, n, w_.state_weight);
    join.shared = s_.mode == ops::RecurrentMode::kGru ? 2 * s_.hidden : n;
    join.all = n;
    join.to = bias;
    device_.ForEach(1, n, join);
  }

  const float* PreState(int64_t state, int64_t cell) const {
    if (at_.pre_state < 0) return nullptr;
    return static_cast<const float*>(b_.inputs[at_.pre_state + state]) +
           cell * s_.state();
  }
  void FirstStates(int64_t d, int64_t cell) {
    functors::FirstState<C> first = {};
    first.from = PreState(0, cell);
    first.h = States(0, cell) + First(d);
    first.low = kLow ? Cs(w_.low) + First(d) : nullptr;
    device_.ForEach(1, s_.state(), first);
    device_.Round(first.h, s_.state());
    if (s_.states == 1) return;
    SetOrZero(States(1, cell) + First(d), PreState(1, cell));
  }
  // A state, or zeros.
  void SetOrZero(float* to, const float* from) {
    const int64_t bytes = s_.state() * int64_t{sizeof(float)};
    if (from == nullptr) {
      device_.Zero(to, bytes);
    } else {
      device_.Copy(to, from, bytes);
    }
  }
  void StoreStates(int64_t d, int64_t cell) {
    if (at_.state < 0) return;
    for (int64_t state = 0; state < s_.states; ++state) {
      float* to = static_cast<float*>(b_.outputs[at_.state + state]);
      SetOrZero(to + cell * s_.state(), States(state, cell) + Last(d));
    }
  }

  void LayerResult(int64_t layer, C* out) {
    for (int64_t d = 0; d < s_.directions; ++d) {
      functors::LayerResult<C> result = {};
      result.batch = s_.batch;
      result.hidden = s_.hidden;
      result.pitch = s_.out_columns();
      result.states = States(0, layer * s_.directions + d) + After(d, 0);
      result.out = out + d * s_.hidden;
      result.lengths = lengths_;
      device_.ForEach(s_.rows(), s_.hidden, result);
    }
  }

  // ---- Backward.

  // What the layer read.
  const C* LayerInput(int64_t layer) {
    if (layer == 0) return Input();
    C* x = Cs(w_.layer);
    LayerResult(layer - 1, x);
    device_.Dropout(layer - 1, x);
    return x;
  }

  // Where the gradient of what the layer read goes; null: nobody asks for it.
  float* InputGrad(int64_t layer) const {
    if (layer == 0 && at_.input_grad < 0) return nullptr;
    if (layer == 0 && s_.dtype == DType::kF32) {
      return static_cast<float*>(b_.outputs[at_.input_grad]);
    }
    return Floats(w_.layer_grad) + layer % 2 * s_.rows() * s_.widest();
  }

  absl::Status BackwardCell(int64_t layer, int64_t d, const C* x,
                            const float* out_grad, float* input_grad) {
    const int64_t cell = layer * s_.directions + d;
    const C* hidden = HiddenStates(cell);
    HT_RETURN_IF_ERROR(BackwardSteps(d, cell, out_grad));
    HT_RETURN_IF_ERROR(WeightGrads(layer, d, x, hidden));
    if (input_grad == nullptr) return absl::OkStatus();
    float* to = d == 0 ? input_grad : Floats(w_.part);
    HT_RETURN_IF_ERROR(device_.Multiply(Which::kInputGrad, layer,
                                        Cs(w_.input_side),
                                        InputWeight(layer, cell), to));
    if (d == 1) {
      device_.ForEach(1, s_.rows() * s_.width(layer),
                      functors::Added{input_grad, to, input_grad});
    }
    return absl::OkStatus();
  }

  // All of a cell's, as products read them.
  const C* HiddenStates(int64_t cell) {
    const float* states = States(0, cell);
    if constexpr (kLow) {
      C* low = Cs(w_.low);
      device_.ForEach(1, s_.cell_states(),
                      functors::Converted<float, C>{states, low});
      return low;
    } else {
      return states;
    }
  }

  absl::Status BackwardSteps(int64_t d, int64_t cell, const float* out_grad) {
    SetOrZero(Floats(w_.passed), StateGrad(at_.hidden_grad, cell));
    if (s_.states > 1) {
      SetOrZero(Floats(w_.cell_grad), StateGrad(at_.cell_grad, cell));
    }
    SetOrZero(Floats(w_.product), nullptr);
    const C* weight = StateWeight(cell);
    HT_RETURN_IF_ERROR(device_.Repeat(Which::kStepGrad, weight));
    for (int64_t k = s_.steps - 1; k >= 0; --k) {
      const functors::BackwardStep<C> step =
          StepGradAt(d, cell, StepOf(d, k), out_grad);
      RunStep<functors::BackwardBody>(step);
      HT_RETURN_IF_ERROR(device_.Multiply(Which::kStepGrad, 0, step.state_side,
                                          weight, Floats(w_.product)));
    }
    StoreStateGrads(cell);
    return absl::OkStatus();
  }

  const float* StateGrad(int slot, int64_t cell) const {
    if (slot < 0) return nullptr;
    return static_cast<const float*>(b_.inputs[slot]) + cell * s_.state();
  }

  functors::BackwardStep<C> StepGradAt(int64_t d, int64_t cell, int64_t t,
                                       const float* out_grad) const {
    functors::BackwardStep<C> step = {};
    step.hidden = s_.hidden;
    step.weight_gates = s_.weight_gates;
    step.kept = s_.kept;
    step.gates =
        gates_ + cell * s_.cell_gates() + t * s_.batch * s_.kept_columns();
    step.h_before = States(0, cell) + Before(d, t);
    if (s_.states > 1) {
      step.c_before = States(1, cell) + Before(d, t);
      step.c_after = States(1, cell) + After(d, t);
      step.cell_grad = Floats(w_.cell_grad);
    }
    if (out_grad != nullptr) {
      step.out_grad =
          out_grad + t * s_.batch * s_.out_columns() + d * s_.hidden;
    }
    step.out_pitch = s_.out_columns();
    step.product = Floats(w_.product);
    step.passed = Floats(w_.passed);
    const int64_t row = t * s_.batch * s_.gate_columns();
    step.input_side = Cs(w_.input_side) + row;
    step.state_side = Cs(w_.state_side) + row;
    step.lengths = lengths_;
    step.step = t;
    return step;
  }

  void StoreStateGrads(int64_t cell) {
    if (at_.pre_state_grad < 0) return;
    const auto to = [&](int64_t state) {
      return static_cast<float*>(b_.outputs[at_.pre_state_grad + state]) +
             cell * s_.state();
    };
    device_.ForEach(
        1, s_.state(),
        functors::Added{Floats(w_.passed), Floats(w_.product), to(0)});
    if (s_.states > 1) SetOrZero(to(1), Floats(w_.cell_grad));
  }

  absl::Status WeightGrads(int64_t layer, int64_t d, const C* x,
                           const C* hidden) {
    using ops::RecurrentWeight;
    if (at_.weight_grads < 0) return absl::OkStatus();
    const int64_t cell = layer * s_.directions + d;
    const auto grad = [&](RecurrentWeight which) {
      return b_.outputs[at_.weight_grads + WeightAt(cell, which)];
    };
    const C* input_side = Cs(w_.input_side);
    const C* state_side = Cs(w_.state_side);
    HT_RETURN_IF_ERROR(device_.MultiplyToWeight(
        Which::kInputWeightGrad, layer, input_side, x,
        grad(RecurrentWeight::kInput), At(w_.weight_grad)));
    HT_RETURN_IF_ERROR(device_.MultiplyToWeight(
        Which::kStateWeightGrad, layer, state_side, hidden + Before(d, 0),
        grad(RecurrentWeight::kState), At(w_.weight_grad)));
    if (!s_.biases) return absl::OkStatus();
    const int64_t n = s_.gate_columns();
    float* sums = Floats(w_.sums);
    device_.SumColumns(input_side, s_.rows(), n, sums);
    device_.Store(sums, n, grad(RecurrentWeight::kInputBias));
    if (state_side != input_side) {
      device_.SumColumns(state_side, s_.rows(), n, sums);
    }
    device_.Store(sums, n, grad(RecurrentWeight::kStateBias));
    return absl::OkStatus();
  }

  const RecurrentShape& s_;
  const RecurrentSlots& at_;
  const RecurrentWorkspace& w_;
  const Buffers& b_;
  Device& device_;
  functors::Lengths lengths_;
  float *gates_ = nullptr, *carried_ = nullptr;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_RECURRENT_RUN_H_

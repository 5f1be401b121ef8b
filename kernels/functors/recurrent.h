// Steps of recurrent layers, unit by unit, forward and backward: what a CPU
// runs row by row and a GPU thread by thread. A row is a sample; `At(row)` is
// the body with its pointers at that row, and a unit is computed by body(j).
//
// C is the type that products read: hidden states and gradients of gates are
// rounded to it; where they are stored, for GCC makes no vectors of a loop that
// copies 16-bit values. Formulas are those of torch.nn.LSTM, GRU and RNN.
#ifndef HALFTONE_KERNELS_FUNCTORS_RECURRENT_H_
#define HALFTONE_KERNELS_FUNCTORS_RECURRENT_H_

#include <cstdint>
#include <type_traits>

#include "kernels/functors/cast.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

// Steps of each sample, i32 or i64; no data: all have all.
struct Lengths {
  const void* data = nullptr;
  bool wide = false;
  HT_HOST_DEVICE bool Has(int64_t sample, int64_t step) const {
    if (data == nullptr) return true;
    return step < (wide ? static_cast<const int64_t*>(data)[sample]
                        : static_cast<const int32_t*>(data)[sample]);
  }
};

// A truth that is the same for a whole loop, as a mask of floats: of branches
// and of loads that only one of two ways needs loops become no vectors.
class Flag {
 public:
  HT_HOST_DEVICE explicit Flag(bool set) : mask_(set ? ~0u : 0u) {}
  HT_HOST_DEVICE float Choose(float if_set, float otherwise) const {
    return FromBits((Bits(if_set) & mask_) | (Bits(otherwise) & ~mask_));
  }
  HT_HOST_DEVICE float OrZero(float if_set) const {
    return FromBits(Bits(if_set) & mask_);
  }

 private:
  uint32_t mask_;
};

// Operands of a step. Rows of `gates` have `kept` x hidden values, those of
// `product` (the hidden state times weight_hh) `weight_gates` x hidden.
template <typename C>
struct ForwardStep {
  int64_t hidden, weight_gates, kept;
  const float* bias;  // as `gates`: of both sides, of a GRU's n apart
  const float* product;
  float* gates;  // in: the input times weight_ih; out: as they are used
  const float *h_before, *c_before;
  float *h_after, *c_after;
  C* low;  // h_after for the next product; unless C is float
  Lengths lengths;
  int64_t step;
  Flag there{true};

  HT_HOST_DEVICE void MoveTo(int64_t row) {
    product += row * weight_gates * hidden;
    gates += row * kept * hidden;
    h_before += row * hidden;
    h_after += row * hidden;
    if (c_before != nullptr) c_before += row * hidden;
    if (c_after != nullptr) c_after += row * hidden;
    if (low != nullptr) low += row * hidden;
    there = Flag(lengths.Has(row, step));
  }
  // A sum of gate k, of both sides.
  HT_HOST_DEVICE float Sum(int k, int64_t j) const {
    const int64_t at = k * hidden + j;
    return gates[at] + product[at] + bias[at];
  }
  HT_HOST_DEVICE void Gate(int k, int64_t j, float value) const {
    gates[k * hidden + j] = there.OrZero(value);
  }
  HT_HOST_DEVICE void Hidden(int64_t j, float h) const {
    const float chosen = there.Choose(h, h_before[j]);
    h_after[j] = Widen(Cast<C>(chosen));
    if constexpr (!std::is_same<C, float>::value) low[j] = Cast<C>(chosen);
  }
};

// Operands of a step's gradient, rows as above. What reaches the hidden state
// between two steps is passed + product: `product` came through weight_hh.
template <typename C>
struct BackwardStep {
  int64_t hidden, weight_gates, kept;
  const float* gates;
  const float *h_before, *c_before, *c_after;
  const float* out_grad;  // may be null: 0
  int64_t out_pitch;
  const float* product;
  float *passed, *cell_grad;
  // Gradients of what the input and the hidden state are multiplied to; the
  // same but for a GRU.
  C *input_side, *state_side;
  Lengths lengths;
  int64_t step;
  Flag there{true}, has_out_grad{false};

  HT_HOST_DEVICE void MoveTo(int64_t row) {
    gates += row * kept * hidden;
    h_before += row * hidden;
    if (c_before != nullptr) c_before += row * hidden;
    if (c_after != nullptr) c_after += row * hidden;
    has_out_grad = Flag(out_grad != nullptr);
    // What can be read, but is not used.
    out_grad = out_grad == nullptr ? passed : out_grad + row * out_pitch;
    product += row * hidden;
    passed += row * hidden;
    if (cell_grad != nullptr) cell_grad += row * hidden;
    input_side += row * weight_gates * hidden;
    state_side += row * weight_gates * hidden;
    there = Flag(lengths.Has(row, step));
  }
  // Of the hidden state behind the step.
  HT_HOST_DEVICE float Reached(int64_t j) const {
    return passed[j] + product[j];
  }
  HT_HOST_DEVICE float HiddenGrad(int64_t j) const {
    return Reached(j) + has_out_grad.OrZero(out_grad[j]);
  }
  HT_HOST_DEVICE float Gate(int k, int64_t j) const {
    return gates[k * hidden + j];
  }
  HT_HOST_DEVICE void InputSide(int k, int64_t j, float grad) const {
    input_side[k * hidden + j] = Cast<C>(there.OrZero(grad));
  }
  HT_HOST_DEVICE void StateSide(int k, int64_t j, float grad) const {
    state_side[k * hidden + j] = Cast<C>(there.OrZero(grad));
  }
  HT_HOST_DEVICE void Pass(int64_t j, float reached, float grad) const {
    passed[j] = there.Choose(grad, reached);
  }
};

struct LstmCell {
  template <typename C>
  static HT_HOST_DEVICE void Forward(const ForwardStep<C>& s, int64_t j) {
    const float i = Sigmoid(s.Sum(0, j)), f = Sigmoid(s.Sum(1, j));
    const float g = Tanh(s.Sum(2, j)), o = Sigmoid(s.Sum(3, j));
    const float before = s.c_before[j];
    const float c = f * before + i * g;
    s.Gate(0, j, i);
    s.Gate(1, j, f);
    s.Gate(2, j, g);
    s.Gate(3, j, o);
    s.c_after[j] = s.there.Choose(c, before);
    s.Hidden(j, o * Tanh(c));
  }
  template <typename C>
  static HT_HOST_DEVICE void Backward(const BackwardStep<C>& s, int64_t j) {
    const float i = s.Gate(0, j), f = s.Gate(1, j);
    const float g = s.Gate(2, j), o = s.Gate(3, j);
    const float tanh = Tanh(s.c_after[j]), before = s.c_before[j];
    const float reached = s.Reached(j), dh = s.HiddenGrad(j);
    const float reached_cell = s.cell_grad[j];
    const float dc = reached_cell + dh * o * (1.0f - tanh * tanh);
    s.InputSide(0, j, dc * g * (i * (1.0f - i)));
    s.InputSide(1, j, dc * before * (f * (1.0f - f)));
    s.InputSide(2, j, dc * i * (1.0f - g * g));
    s.InputSide(3, j, dh * tanh * (o * (1.0f - o)));
    s.cell_grad[j] = s.there.Choose(dc * f, reached_cell);
    s.Pass(j, reached, 0.0f);
  }
};

struct GruCell {
  template <typename C>
  static HT_HOST_DEVICE void Forward(const ForwardStep<C>& s, int64_t j) {
    const int64_t n_at = 2 * s.hidden + j, q_at = 3 * s.hidden + j;
    const float r = Sigmoid(s.Sum(0, j)), z = Sigmoid(s.Sum(1, j));
    const float q = s.product[n_at] + s.bias[q_at];
    const float n = Tanh(s.gates[n_at] + s.bias[n_at] + r * q);
    const float before = s.h_before[j];
    s.Gate(0, j, r);
    s.Gate(1, j, z);
    s.Gate(2, j, n);
    s.Gate(3, j, q);
    s.Hidden(j, n + z * (before - n));
  }
  template <typename C>
  static HT_HOST_DEVICE void Backward(const BackwardStep<C>& s, int64_t j) {
    const float r = s.Gate(0, j), z = s.Gate(1, j);
    const float n = s.Gate(2, j), q = s.Gate(3, j);
    const float reached = s.Reached(j), dh = s.HiddenGrad(j);
    const float dz = dh * (s.h_before[j] - n) * (z * (1.0f - z));
    const float dn = dh * (1.0f - z) * (1.0f - n * n);
    const float dr = dn * q * (r * (1.0f - r));
    s.InputSide(0, j, dr);
    s.InputSide(1, j, dz);
    s.InputSide(2, j, dn);
    s.StateSide(0, j, dr);
    s.StateSide(1, j, dz);
    s.StateSide(2, j, dn * r);
    s.Pass(j, reached, dh * z);
  }
};

template <bool kRelu>
struct PlainCell {
  template <typename C>
  static HT_HOST_DEVICE void Forward(const ForwardStep<C>& s, int64_t j) {
    const float sum = s.Sum(0, j);
    // A NaN stays one.
    const float h = kRelu ? (sum < 0.0f ? 0.0f : sum) : Tanh(sum);
    s.Gate(0, j, h);
    s.Hidden(j, h);
  }
  template <typename C>
  static HT_HOST_DEVICE void Backward(const BackwardStep<C>& s, int64_t j) {
    const float h = s.Gate(0, j), reached = s.Reached(j), dh = s.HiddenGrad(j);
    const float tanh_grad = dh * (1.0f - h * h);
    s.InputSide(0, j, kRelu ? (h > 0.0f ? dh : 0.0f) : tanh_grad);
    s.Pass(j, reached, 0.0f);
  }
};

template <typename Cell, typename C>
struct ForwardBody : ForwardStep<C> {
  explicit ForwardBody(const ForwardStep<C>& step) : ForwardStep<C>(step) {}
  HT_HOST_DEVICE ForwardBody At(int64_t row) const {
    ForwardBody body = *this;
    body.MoveTo(row);
    return body;
  }
  HT_HOST_DEVICE void operator()(int64_t j) const { Cell::Forward(*this, j); }
};
template <typename Cell, typename C>
struct BackwardBody : BackwardStep<C> {
  explicit BackwardBody(const BackwardStep<C>& step) : BackwardStep<C>(step) {}
  HT_HOST_DEVICE BackwardBody At(int64_t row) const {
    BackwardBody body = *this;
    body.MoveTo(row);
    return body;
  }
  HT_HOST_DEVICE void operator()(int64_t j) const { Cell::Backward(*this, j); }
};

// ---- What is between the steps; `At` of a body without rows is itself.

// The first hidden state, rounded.
template <typename C>
struct FirstState {
  const float* from;  // null: 0
  float* h;
  C* low;
  HT_HOST_DEVICE FirstState At(int64_t) const { return *this; }
  HT_HOST_DEVICE void operator()(int64_t j) const {
    const float first = from == nullptr ? 0.0f : from[j];
    h[j] = Widen(Cast<C>(first));
    if constexpr (!std::is_same<C, float>::value) low[j] = Cast<C>(first);
  }
};

// Both biases as the steps read them: `shared` sums of the two, then those of
// the input, then those of the hidden state.
template <typename C>
struct JoinBiases {
  const C *input, *state;
  int64_t shared, all;
  float* to;
  HT_HOST_DEVICE JoinBiases At(int64_t) const { return *this; }
  HT_HOST_DEVICE void operator()(int64_t j) const {
    const float x = Widen(input[j]), h = Widen(state[j]);
    if (j < shared) {
      to[j] = x + h;
    } else {
      to[j] = x;
      to[all + j - shared] = h;
    }
  }
};

// One direction's hidden states as a layer's result, 0 behind the ends: row
// t * batch + b, the states of which begin at `states`.
template <typename C>
struct LayerResult {
  int64_t batch, hidden, pitch;
  const float* states;
  C* out;
  Lengths lengths;
  Flag there{true};
  HT_HOST_DEVICE LayerResult At(int64_t row) const {
    LayerResult body = *this;
    body.states += row * hidden;
    body.out += row * pitch;
    body.there = Flag(lengths.Has(row % batch, row / batch));
    return body;
  }
  HT_HOST_DEVICE void operator()(int64_t j) const {
    out[j] = Cast<C>(there.OrZero(states[j]));
  }
};

// out = x + y.
struct Added {
  const float *x, *y;
  float* out;
  HT_HOST_DEVICE Added At(int64_t) const { return *this; }
  HT_HOST_DEVICE void operator()(int64_t j) const { out[j] = x[j] + y[j]; }
};

template <typename From, typename To>
struct Converted {
  const From* from;
  To* to;
  HT_HOST_DEVICE Converted At(int64_t) const { return *this; }
  HT_HOST_DEVICE void operator()(int64_t j) const { to[j] = Cast<To>(from[j]); }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_RECURRENT_H_

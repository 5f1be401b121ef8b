// Sizes, products and memory of the ops rnn, rnn_eval and rnn_grad.
#ifndef HALFTONE_KERNELS_COMMON_RECURRENT_H_
#define HALFTONE_KERNELS_COMMON_RECURRENT_H_

#include <cstdint>

#include "graph/ops/recurrent_mode.h"
#include "kernels/bound_op.h"
#include "kernels/common/matmul_shape.h"
#include "kernels/functors/dropout.h"

namespace halftone {
namespace kernels {

// A cell is one direction of one layer; cells are counted layer by layer.
struct RecurrentShape {
  ops::RecurrentMode mode;
  int64_t layers, directions, hidden, steps, batch, input;
  int64_t weight_gates, kept, states;
  bool biases;
  DType dtype;

  explicit RecurrentShape(const BoundOp& op);

  int64_t cells() const { return layers * directions; }
  int64_t rows() const { return steps * batch; }
  // Elements of a state, of the gates that weights are for, of those kept.
  int64_t state() const { return batch * hidden; }
  int64_t gate_columns() const { return weight_gates * hidden; }
  int64_t kept_columns() const { return kept * hidden; }
  int64_t out_columns() const { return directions * hidden; }
  int64_t width(int64_t layer) const {
    return layer == 0 ? input : out_columns();
  }
  int64_t widest() const;
  // Elements of the op's outputs Gates and Carried of one cell and state.
  int64_t cell_gates() const { return rows() * kept_columns(); }
  int64_t cell_states() const { return (steps + 1) * state(); }
};

// The products of a cell.
enum class RecurrentProduct : int8_t {
  kGates,            // of all steps: input * weight_ih'
  kInputGrad,        // gate gradients * weight_ih
  kInputWeightGrad,  // gate gradients' * input
  kStep,             // hidden state * weight_hh'
  kStepGrad,         // gate gradients of a step * weight_hh
  kStateWeightGrad,  // gate gradients' * hidden states
  kCount
};
Product ProductOf(const RecurrentShape& shape, RecurrentProduct which,
                  int64_t layer);
// Whether it is the gradient of a weight, of the op's type; others are f32.
bool IsOfWeight(RecurrentProduct which);
// Whether y is the same for all steps.
bool IsRepeated(RecurrentProduct which);
// Whether the sizes are those of the layer's input.
bool DependsOnInput(RecurrentProduct which);

// Flat positions of slots; -1: absent.
struct RecurrentSlots {
  int input = -1, pre_state = -1, weights = -1, lengths = -1;
  int out = -1, state = -1;
  int gates = -1, carried = -1;  // outputs of rnn, inputs of rnn_grad
  int out_grad = -1, hidden_grad = -1, cell_grad = -1;
  int input_grad = -1, pre_state_grad = -1, weight_grads = -1;
  bool wide_lengths = false;

  static RecurrentSlots Forward(const BoundOp& op);
  static RecurrentSlots Backward(const BoundOp& op);

 private:
  static RecurrentSlots Shared(const BoundOp& op);
};

// What dropout between layers draws by; of an op without it none.
struct RecurrentDraws {
  functors::DropoutOp dropout = {0, 1};
  uint32_t stream = 0;
  int seed = -1;  // the input; Step and FirstSample come after it

  explicit RecurrentDraws(const BoundOp& op);
};

// Where things are in the workspace, in bytes. C is what products read.
struct RecurrentWorkspace {
  static constexpr int64_t kAlignment = 256;

  // Forward and backward: operands as C where they are not.
  int64_t input, input_weight, state_weight;
  int64_t layer;  // a layer's result or input, as C
  int64_t low;    // hidden states, as C
  int64_t product;
  // Forward; gates of one cell at a time.
  int64_t bias, gates, carried;
  // Backward.
  // layer_grad: of a layer's result and of its input, which is the result of
  // the one below; part: of a second direction.
  int64_t out_grad, layer_grad, part, passed, cell_grad;
  int64_t input_side, state_side, sums, weight_grad;
  int64_t bytes;  // of all, where the device's own begins

  // compute: bytes of C.
  static RecurrentWorkspace Forward(const RecurrentShape& shape, bool keeps,
                                    int64_t compute);
  static RecurrentWorkspace Backward(const RecurrentShape& shape,
                                     int64_t compute);
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_RECURRENT_H_

// What a recurrent layer computes: facts that its schema and kernels share.
#ifndef HALFTONE_GRAPH_OPS_RECURRENT_MODE_H_
#define HALFTONE_GRAPH_OPS_RECURRENT_MODE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace halftone {
namespace ops {

enum class RecurrentMode : uint8_t { kTanh, kRelu, kLstm, kGru };

// Of Paddle's words RNN_TANH, RNN_RELU, LSTM and GRU.
inline std::optional<RecurrentMode> RecurrentModeOf(absl::string_view word) {
  if (word == "RNN_TANH") return RecurrentMode::kTanh;
  if (word == "RNN_RELU") return RecurrentMode::kRelu;
  if (word == "LSTM") return RecurrentMode::kLstm;
  if (word == "GRU") return RecurrentMode::kGru;
  return std::nullopt;
}

// Gates that weights are for, side by side: input, forget, cell, output of an
// LSTM; reset, update, new of a GRU.
inline int64_t WeightGates(RecurrentMode mode) {
  return mode == RecurrentMode::kLstm ? 4 : mode == RecurrentMode::kGru ? 3 : 1;
}
// Values of a unit and step that the gradient reads: those, and of a GRU what
// the reset gate multiplies.
inline int64_t KeptGates(RecurrentMode mode) {
  return mode == RecurrentMode::kGru ? 4 : WeightGates(mode);
}
// The hidden state, and the cell of an LSTM.
inline int64_t States(RecurrentMode mode) {
  return mode == RecurrentMode::kLstm ? 2 : 1;
}

// Where a tensor stands in WeightList, in Paddle's order: weight_ih and
// weight_hh of all layers and directions, then bias_ih and bias_hh.
enum class RecurrentWeight : uint8_t { kInput, kState, kInputBias, kStateBias };
inline int64_t WeightPosition(int64_t cells, int64_t cell,
                              RecurrentWeight which) {
  const int64_t kind = static_cast<int64_t>(which);
  return (kind / 2 * cells + cell) * 2 + kind % 2;
}

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_RECURRENT_MODE_H_

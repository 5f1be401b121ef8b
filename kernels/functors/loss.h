// Softmax and cross entropy of one element of a row, given what the row was
// reduced to: its maximum and the sum of exp(x - maximum).
#ifndef HALFTONE_KERNELS_FUNCTORS_LOSS_H_
#define HALFTONE_KERNELS_FUNCTORS_LOSS_H_

#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

enum class LabelKind { kClass, kIgnored, kInvalid };

HT_HOST_DEVICE inline LabelKind KindOfLabel(int64_t label, int64_t classes,
                                            int64_t ignore_index) {
  if (label == ignore_index) return LabelKind::kIgnored;
  return label >= 0 && label < classes ? LabelKind::kClass
                                       : LabelKind::kInvalid;
}

// x / y in three steps, given 1 / y: the same bits (P. Markstein, "Computation
// of elementary functions on the IBM RISC System/6000 processor", 1990), but
// one place off where steps underflow. x and y finite, or NaNs.
HT_HOST_DEVICE inline float Quotient(float x, float y, float inverse) {
  const float quotient = x * inverse;
  return Fma(Fma(-quotient, y, x), inverse, quotient);
}

// `shifted`: the label's logit minus the maximum.
HT_HOST_DEVICE inline float CrossEntropy(float shifted, float sum) {
  return Log(sum) - shifted;
}

// `e`: exp(x - maximum); `one_hot`: 1 at the label's class, else 0.
HT_HOST_DEVICE inline float CrossEntropyGrad(float e, float sum, float one_hot,
                                             float loss_grad) {
  return (e / sum - one_hot) * loss_grad;
}

// With a probability as the label: a class's share of the loss, and the
// gradient; `label_sum`: over the row. `log_p`: log of the class's softmax.
HT_HOST_DEVICE inline float SoftCrossEntropy(float log_p, float label) {
  return label == 0.0f ? 0.0f : -(label * log_p);
}
HT_HOST_DEVICE inline float SoftCrossEntropyGrad(float e, float sum,
                                                 float label_sum, float label,
                                                 float loss_grad) {
  return (e / sum * label_sum - label) * loss_grad;
}
// The same of a probability p, not of a logit.
HT_HOST_DEVICE inline float ProbabilityGrad(float p, float label,
                                            float loss_grad) {
  return label == 0.0f ? 0.0f : -(label / p) * loss_grad;
}

// The gradients of softmax and of its logarithm: the probability that an output
// stands for (Low: for results of 16 bits), what is summed over a row, and what
// the sum makes of an element. `V`: float, or a vector of them (in results'
// places: a compiler says of a vector that is returned that not all instruction
// sets do it alike).
struct SoftmaxGrad {
  static HT_HOST_DEVICE float Probability(float out) { return out; }
  static HT_HOST_DEVICE float LowProbability(float out) { return out; }
  template <typename V>
  static HT_HOST_DEVICE void Term(const V& p, const V& out_grad, V* term) {
    *term = p * out_grad;
  }
  template <typename V>
  static HT_HOST_DEVICE void Of(const V& p, const V& out_grad, float sum,
                                V* grad) {
    *grad = p * (out_grad - sum);
  }
};
struct LogSoftmaxGrad {
  static HT_HOST_DEVICE float Probability(float out) { return ExpUpTo0(out); }
  static HT_HOST_DEVICE float LowProbability(float out) {
    return LowExpUpTo0(out);
  }
  template <typename V>
  static HT_HOST_DEVICE void Term(const V&, const V& out_grad, V* term) {
    *term = out_grad;
  }
  template <typename V>
  static HT_HOST_DEVICE void Of(const V& p, const V& out_grad, float sum,
                                V* grad) {
    *grad = out_grad - p * sum;
  }
};

// Whether a score comes before the label's score in descending order, the
// lower index first among equals. A NaN comes before every number, so a row
// whose label scores NaN is never right.
HT_HOST_DEVICE inline bool ScoresBefore(float score, int64_t index,
                                        float label_score, int64_t label) {
  if (score == label_score) return index < label;
  return !(score < label_score);
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_LOSS_H_

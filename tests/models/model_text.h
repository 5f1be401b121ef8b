// Models as text, op by op.
#ifndef HALFTONE_TESTS_MODELS_MODEL_TEXT_H_
#define HALFTONE_TESTS_MODELS_MODEL_TEXT_H_

#include <string>
#include <utility>
#include <vector>

namespace halftone {
namespace runtime {

// An f32 parameter of such dims: "6, 4".
std::string Param(const std::string& name, const std::string& dims,
                  const std::string& init = "uniform { bound: 0.4 }");

// Pairs of a slot and the value in it; `attrs` as text.
std::string Op(const std::string& type,
               const std::vector<std::pair<std::string, std::string>>& in,
               const std::string& out_slot, const std::string& out,
               const std::string& attrs = "");
// From X, or X and Y, to Out.
std::string Unary(const std::string& type, const std::string& x,
                  const std::string& out);
std::string Binary(const std::string& type, const std::string& x,
                   const std::string& y, const std::string& out);
// Biased, if there is a bias.
std::string Matmul(const std::string& x, const std::string& w,
                   const std::string& b, const std::string& out);
// A norm over `channels` of x, with such parameters; its statistics are m and
// v.
std::string BatchNorm(const std::string& x, int channels,
                      const std::string& scale, const std::string& bias,
                      const std::string& out);
// 3x3 with a bias, as large as its input.
std::string Conv(const std::string& x, const std::string& w,
                 const std::string& b, const std::string& out);
std::string Add(const std::string& x, const std::string& y,
                const std::string& out);
// `loss`, the mean of `ce`, of `logits` and `label`; the metric top1 of
// `correct`.
std::string CrossEntropy();

// What models of `x` : f32[B,6] and `label` begin with.
extern const char kSixFeatures[];
// 6, 12 and 4 wide.
std::string Perceptron();
// Linear, of a mean over the samples of a mask that is fed: `keep`.
std::string Masked();

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_TESTS_MODELS_MODEL_TEXT_H_

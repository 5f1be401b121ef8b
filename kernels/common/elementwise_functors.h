// Which functor computes which element-wise op: the one list behind the op's
// own kernel and the pattern elementwise_chain, on every device. A new op whose
// functor there is, is a line here.
#ifndef HALFTONE_KERNELS_COMMON_ELEMENTWISE_FUNCTORS_H_
#define HALFTONE_KERNELS_COMMON_ELEMENTWISE_FUNCTORS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "kernels/bound_op.h"
#include "kernels/functors/activation.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/gelu.h"
#include "kernels/functors/pointwise_loss.h"
#include "kernels/functors/power.h"
#include "kernels/functors/rounding.h"
#include "kernels/functors/trigonometry.h"

namespace halftone {
namespace kernels {

enum class Operands : uint8_t {
  kOne,
  kTwo,            // X and Y or Alpha, broadcast to the output's shape
  kTwoOfOneShape,  // the output's: gradients of activations, losses
};

template <typename F, Operands kOperands>
struct ElementwiseFunctor {
  using Functor = F;
  static constexpr Operands operands = kOperands;

  absl::string_view op;
  // Reads the functor's settings; null: it has none.
  F (*make)(const BoundOp& op) = nullptr;
  // Of an op with several functors: whether its attributes choose this one.
  bool (*chosen)(const BoundOp& op) = nullptr;

  F Make(const BoundOp& op) const { return make == nullptr ? F() : make(op); }
  bool Computes(const BoundOp& bound) const {
    return bound.type() == op && (chosen == nullptr || chosen(bound));
  }
};

template <typename F>
using Unary = ElementwiseFunctor<F, Operands::kOne>;
template <typename F>
using Binary = ElementwiseFunctor<F, Operands::kTwo>;
template <typename F>
using Gradient = ElementwiseFunctor<F, Operands::kTwoOfOneShape>;
template <typename F>
using Loss = ElementwiseFunctor<F, Operands::kTwoOfOneShape>;

// Settings that are attributes, in the functor's order.
namespace setting {
inline constexpr char kAlpha[] = "alpha", kBeta[] = "beta", kDelta[] = "delta",
                      kEpsilon[] = "epsilon", kFactor[] = "factor",
                      kMax[] = "max", kMin[] = "min", kOffset[] = "offset",
                      kScale[] = "scale", kSlope[] = "slope",
                      kThreshold[] = "threshold", kTMax[] = "t_max",
                      kTMin[] = "t_min";
}  // namespace setting
template <typename F, const char*... kAttrs>
F From(const BoundOp& op) {
  return F{static_cast<float>(op.Float(kAttrs))...};
}
functors::ScaleOp MakeScale(const BoundOp& op);
functors::ScaleOp MakeLabelSmooth(const BoundOp& op);
functors::ClipOp MakeRelu6(const BoundOp& op);
functors::ClipGradOp MakeRelu6Grad(const BoundOp& op);
functors::SwishOp MakeSilu(const BoundOp& op);
functors::SwishGradOp MakeSiluGrad(const BoundOp& op);
// Which functor an op with several wants.
bool IsByTanh(const BoundOp& gelu);
bool IsExact(const BoundOp& gelu);
bool RoundsToEven(const BoundOp& round);
bool RoundsAway(const BoundOp& round);
template <int kHalves>  // factor = kHalves / 2
bool IsPower(const BoundOp& pow) {
  return pow.Float(setting::kFactor) == 0.5 * kHalves;
}
bool IsOtherPower(const BoundOp& pow);

// (`sum`, of any number of operands, has a kernel of its own and is AddOp in
// chains.)
inline constexpr auto kUnaryFunctors = std::make_tuple(
    Unary<functors::ReluOp>{"relu"}, Unary<functors::TanhOp>{"tanh"},
    Unary<functors::SigmoidOp>{"sigmoid"}, Unary<functors::ExpOp>{"exp"},
    Unary<functors::LogOp>{"log"}, Unary<functors::SquareOp>{"square"},
    Unary<functors::SqrtOp>{"sqrt"}, Unary<functors::RsqrtOp>{"rsqrt"},
    Unary<functors::ReciprocalOp>{"reciprocal"}, Unary<functors::AbsOp>{"abs"},
    Unary<functors::NegOp>{"neg"}, Unary<functors::SignOp>{"sign"},
    Unary<functors::FloorOp>{"floor"}, Unary<functors::CeilOp>{"ceil"},
    Unary<functors::RoundOp>{"round", nullptr, RoundsAway},
    Unary<functors::RoundEvenOp>{"round", nullptr, RoundsToEven},
    Unary<functors::SinOp>{"sin"}, Unary<functors::CosOp>{"cos"},
    Unary<functors::AtanOp>{"atan"}, Unary<functors::ErfOp>{"erf"},
    Unary<functors::ZeroOp>{"fill_zeros_like"},
    Unary<functors::SquareOp>{"pow", nullptr, IsPower<4>},
    Unary<functors::CubeOp>{"pow", nullptr, IsPower<6>},
    Unary<functors::SqrtOp>{"pow", nullptr, IsPower<1>},
    Unary<functors::RsqrtOp>{"pow", nullptr, IsPower<-1>},
    Unary<functors::ReciprocalOp>{"pow", nullptr, IsPower<-2>},
    Unary<functors::PowOp>{"pow", From<functors::PowOp, setting::kFactor>,
                           IsOtherPower},
    Unary<functors::ScaleOp>{"scale", MakeScale},
    Unary<functors::ScaleOp>{"label_smooth", MakeLabelSmooth},
    Unary<functors::ClipOp>{
        "clip", From<functors::ClipOp, setting::kMin, setting::kMax>},
    Unary<functors::ClipOp>{
        "brelu", From<functors::ClipOp, setting::kTMin, setting::kTMax>},
    Unary<functors::ClipOp>{
        "hard_tanh", From<functors::ClipOp, setting::kTMin, setting::kTMax>},
    Unary<functors::ClipOp>{"relu6", MakeRelu6},
    Unary<functors::LeakyReluOp>{"leaky_relu",
                                 From<functors::LeakyReluOp, setting::kAlpha>},
    Unary<functors::EluOp>{"elu", From<functors::EluOp, setting::kAlpha>},
    Unary<functors::SwishOp>{"silu", MakeSilu},
    Unary<functors::SwishOp>{"swish", From<functors::SwishOp, setting::kBeta>},
    Unary<functors::HardSwishOp>{
        "hard_swish", From<functors::HardSwishOp, setting::kThreshold,
                           setting::kScale, setting::kOffset>},
    Unary<functors::HardSigmoidOp>{
        "hard_sigmoid",
        From<functors::HardSigmoidOp, setting::kSlope, setting::kOffset>},
    Unary<functors::SoftplusOp>{
        "softplus",
        From<functors::SoftplusOp, setting::kBeta, setting::kThreshold>},
    Unary<functors::MishOp>{"mish",
                            From<functors::MishOp, setting::kThreshold>},
    Unary<functors::GeluOp>{"gelu", nullptr, IsExact},
    Unary<functors::TanhGeluOp>{"gelu", nullptr, IsByTanh});

inline constexpr auto kBinaryFunctors =
    std::make_tuple(Binary<functors::AddOp>{"elementwise_add"},
                    Binary<functors::SubOp>{"elementwise_sub"},
                    Binary<functors::MulOp>{"elementwise_mul"},
                    Binary<functors::DivOp>{"elementwise_div"},
                    Binary<functors::MaxOp>{"elementwise_max"},
                    Binary<functors::MaxByXOp>{"elementwise_max_by_x"},
                    Binary<functors::MaxByYOp>{"elementwise_max_by_y"},
                    Binary<functors::MinOp>{"elementwise_min"},
                    Binary<functors::MinByXOp>{"elementwise_min_by_x"},
                    Binary<functors::MinByYOp>{"elementwise_min_by_y"},
                    Binary<functors::PowerOp>{"elementwise_pow"},
                    Binary<functors::PowerByXOp>{"elementwise_pow_by_x"},
                    Binary<functors::PowerByYOp>{"elementwise_pow_by_y"},
                    Binary<functors::PreluOp>{"prelu"},
                    Binary<functors::PreluByXOp>{"prelu_by_x"},
                    Binary<functors::PreluByAlphaOp>{"prelu_by_alpha"});

inline constexpr auto kGradientFunctors = std::make_tuple(
    Gradient<functors::ReluGradOp>{"relu_grad"},
    Gradient<functors::TanhGradOp>{"tanh_grad"},
    Gradient<functors::SigmoidGradOp>{"sigmoid_grad"},
    Gradient<functors::AbsGradOp>{"abs_grad"},
    Gradient<functors::ReciprocalGradOp>{"reciprocal_grad"},
    Gradient<functors::AtanGradOp>{"atan_grad"},
    Gradient<functors::ErfGradOp>{"erf_grad"},
    Gradient<functors::ClipGradOp>{
        "clip_grad", From<functors::ClipGradOp, setting::kMin, setting::kMax>},
    Gradient<functors::ClipGradOp>{
        "brelu_grad",
        From<functors::ClipGradOp, setting::kTMin, setting::kTMax>},
    Gradient<functors::ClipGradOp>{
        "hard_tanh_grad",
        From<functors::ClipGradOp, setting::kTMin, setting::kTMax>},
    Gradient<functors::ClipGradOp>{"relu6_grad", MakeRelu6Grad},
    Gradient<functors::LeakyReluGradOp>{
        "leaky_relu_grad", From<functors::LeakyReluGradOp, setting::kAlpha>},
    Gradient<functors::EluGradOp>{"elu_grad",
                                  From<functors::EluGradOp, setting::kAlpha>},
    Gradient<functors::SwishGradOp>{"silu_grad", MakeSiluGrad},
    Gradient<functors::SwishGradOp>{
        "swish_grad", From<functors::SwishGradOp, setting::kBeta>},
    Gradient<functors::HardSwishGradOp>{
        "hard_swish_grad", From<functors::HardSwishGradOp, setting::kThreshold,
                                setting::kScale, setting::kOffset>},
    Gradient<functors::HardSigmoidGradOp>{
        "hard_sigmoid_grad",
        From<functors::HardSigmoidGradOp, setting::kSlope>},
    Gradient<functors::SoftplusGradOp>{
        "softplus_grad",
        From<functors::SoftplusGradOp, setting::kBeta, setting::kThreshold>},
    Gradient<functors::MishGradOp>{
        "mish_grad", From<functors::MishGradOp, setting::kThreshold>},
    Gradient<functors::GeluGradOp>{"gelu_grad", nullptr, IsExact},
    Gradient<functors::TanhGeluGradOp>{"gelu_grad", nullptr, IsByTanh});

inline constexpr auto kLossFunctors = std::make_tuple(
    Loss<functors::HuberOp>{"huber_loss",
                            From<functors::HuberOp, setting::kDelta>},
    Loss<functors::HuberByXOp>{"huber_loss_by_x",
                               From<functors::HuberByXOp, setting::kDelta>},
    Loss<functors::SquareErrorOp>{"square_error_cost"},
    Loss<functors::SquareErrorByXOp>{"square_error_cost_by_x"},
    Loss<functors::BceOp>{"bce_loss"},
    Loss<functors::BceByXOp>{"bce_loss_by_x"},
    Loss<functors::KldivOp>{"kldiv_loss"},
    Loss<functors::KldivByXOp>{"kldiv_loss_by_x"},
    Loss<functors::LogLossOp>{"log_loss",
                              From<functors::LogLossOp, setting::kEpsilon>},
    Loss<functors::LogLossByXOp>{
        "log_loss_by_x", From<functors::LogLossByXOp, setting::kEpsilon>});

inline constexpr auto kElementwiseFunctors = std::tuple_cat(
    kUnaryFunctors, kBinaryFunctors, kGradientFunctors, kLossFunctors);

using ElementwiseFunctors = std::remove_const_t<decltype(kElementwiseFunctors)>;
inline constexpr size_t kElementwiseFunctorCount =
    std::tuple_size<ElementwiseFunctors>::value;

// visit(functor) in the list's order.
template <typename Visit>
void ForEachElementwise(const Visit& visit) {
  std::apply([&](const auto&... functor) { (visit(functor), ...); },
             kElementwiseFunctors);
}

// Settings of any functor of the list, for steps that take them at run time.
struct FunctorSettings {
  alignas(4) unsigned char bytes[12];

  template <typename F>
  static FunctorSettings Of(const F& functor) {
    static_assert(std::is_trivially_copyable<F>::value &&
                      sizeof(F) <= sizeof(FunctorSettings),
                  "a few numbers");
    FunctorSettings settings = {};
    std::memcpy(settings.bytes, &functor, sizeof(F));
    return settings;
  }
  template <typename F>
  HT_HOST_DEVICE F As() const {
    F functor{};
    memcpy(&functor, bytes, sizeof(F));
    return functor;
  }
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_ELEMENTWISE_FUNCTORS_H_

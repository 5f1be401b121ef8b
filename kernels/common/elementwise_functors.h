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
#include "kernels/functors/elementwise.h"
#include "kernels/functors/gelu.h"

namespace halftone {
namespace kernels {

enum class Operands : uint8_t {
  kOne,
  kTwo,            // X and Y, broadcast by `axis`
  kTwoOfOneShape,  // the output's: gradients of activations
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

functors::ScaleOp MakeScale(const BoundOp& op);
functors::ClipOp MakeClip(const BoundOp& op);
functors::ClipGradOp MakeClipGrad(const BoundOp& op);
bool IsByTanh(const BoundOp& gelu);
bool IsExact(const BoundOp& gelu);

// (`sum`, of any number of operands, has a kernel of its own and is AddOp in
// chains.)
inline constexpr auto kElementwiseFunctors = std::make_tuple(
    Unary<functors::ReluOp>{"relu"}, Unary<functors::TanhOp>{"tanh"},
    Unary<functors::SigmoidOp>{"sigmoid"}, Unary<functors::ExpOp>{"exp"},
    Unary<functors::LogOp>{"log"}, Unary<functors::SquareOp>{"square"},
    Unary<functors::SqrtOp>{"sqrt"}, Unary<functors::RsqrtOp>{"rsqrt"},
    Unary<functors::AbsOp>{"abs"}, Unary<functors::ScaleOp>{"scale", MakeScale},
    Unary<functors::ClipOp>{"clip", MakeClip},
    Unary<functors::GeluOp>{"gelu", nullptr, IsExact},
    Unary<functors::TanhGeluOp>{"gelu", nullptr, IsByTanh},
    Binary<functors::AddOp>{"elementwise_add"},
    Binary<functors::SubOp>{"elementwise_sub"},
    Binary<functors::MulOp>{"elementwise_mul"},
    Binary<functors::DivOp>{"elementwise_div"},
    Gradient<functors::ReluGradOp>{"relu_grad"},
    Gradient<functors::TanhGradOp>{"tanh_grad"},
    Gradient<functors::SigmoidGradOp>{"sigmoid_grad"},
    Gradient<functors::AbsGradOp>{"abs_grad"},
    Gradient<functors::ClipGradOp>{"clip_grad", MakeClipGrad},
    Gradient<functors::GeluGradOp>{"gelu_grad", nullptr, IsExact},
    Gradient<functors::TanhGeluGradOp>{"gelu_grad", nullptr, IsByTanh});

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

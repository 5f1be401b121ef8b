// A register's worth of floats, for code that is compiled for each instruction
// set (isa.h). Functions take pointers to
// them, as vectors of one set are no arguments in code for another.
#ifndef HALFTONE_KERNELS_CPU_WIDE_VECTOR_H_
#define HALFTONE_KERNELS_CPU_WIDE_VECTOR_H_

namespace halftone {
namespace kernels {

namespace wide_vector_internal {
template <int kLanes>
struct OfLanes;
template <>
struct OfLanes<4> {
  using type = float __attribute__((vector_size(16), aligned(4), may_alias));
};
template <>
struct OfLanes<8> {
  using type = float __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct OfLanes<16> {
  using type = float __attribute__((vector_size(64), aligned(4), may_alias));
};
}  // namespace wide_vector_internal

template <int kLanes>
using WideVector = typename wide_vector_internal::OfLanes<kLanes>::type;

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_WIDE_VECTOR_H_

// Functions of one number of 16 bits by their results for all 65,536: looking
// one up takes some 20 cycles for a vector of 16 where the tensor's numbers are
// alike, as a network's are. Made at Prepare; ops of one function share it.
#ifndef HALFTONE_KERNELS_CPU_LOW_TABLE_H_
#define HALFTONE_KERNELS_CPU_LOW_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "graph/base/dtype.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/operand.h"

namespace halftone {
namespace kernels {

// F::kIsLong: it takes longer than a look-up (kernels/functors/math.h).
template <typename F, typename = void>
struct IsLong : std::false_type {};
template <typename F>
struct IsLong<F, std::enable_if_t<F::kIsLong>> : std::true_type {};

inline constexpr int64_t kLowPatterns = 1 << 16;

// Tensors of fewer elements are computed.
inline constexpr int64_t kLeastForTable = kLowPatterns;

// A result per pattern of bits, as bits of the dtype or as f32.
using LowTable = std::shared_ptr<const std::vector<uint16_t>>;
using LowSlopes = std::shared_ptr<const std::vector<float>>;

namespace low_table_internal {
// The table that goes by this name, made by make(patterns, results) unless some
// op has it: both of 65,536 elements.
template <typename T>
std::shared_ptr<const std::vector<T>> Shared(
    const std::string& name,
    const std::function<void(const uint16_t*, T*)>& make);
}  // namespace low_table_internal

// The table of f(x), as T, for a tensor x of `dtype`; null where f is to be
// computed: it is short, or the tensor is small or broadcast.
template <typename T, typename F>
std::shared_ptr<const std::vector<T>> MakeLowTable(const Operand& x,
                                                   DType dtype,
                                                   int64_t elements,
                                                   const F& f) {
  if constexpr (!IsLong<F>::value) return nullptr;
  if (!IsLow(dtype) || !x.IsWhole(dtype) || elements < kLeastForTable) {
    return nullptr;
  }
  std::string name = typeid(F).name();
  name += static_cast<char>(dtype);
  static_assert(std::is_trivially_copyable<F>::value, "its bytes are its name");
  if constexpr (!std::is_empty<F>::value) {
    name.append(reinterpret_cast<const char*>(&f), sizeof(F));
  }
  constexpr bool kAsFloat = std::is_same<T, float>::value;
  return low_table_internal::Shared<T>(
      name, [&](const uint16_t* patterns, T* results) {
        MapUnary(x, patterns, kAsFloat ? DType::kF32 : dtype, results,
                 kLowPatterns, 1, f);
      });
}

// out[i] = table[x[i]]. `out` may be x.
void LookUp(const LowTable& table, const void* x, void* out, int64_t elements,
            int threads);

// out[i] = grad[i] * slopes[x[i]], rounded once. `out` may be either.
void MultiplyBySlopes(DType dtype, const LowSlopes& slopes, const void* x,
                      const void* grad, void* out, int64_t elements,
                      int threads);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_LOW_TABLE_H_

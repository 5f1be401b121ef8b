// Rows of what was made, f32 or stored already, as elements of another type.
#ifndef HALFTONE_KERNELS_CPU_STORE_ROWS_H_
#define HALFTONE_KERNELS_CPU_STORE_ROWS_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/norm.h"
#include "kernels/functors/elementwise.h"

namespace halftone {
namespace kernels {

// `rows` of n elements, which may lie where they are stored: of `relu` its
// results.
template <typename From, typename T>
void StoreRows(const From* from, int64_t from_stride, int64_t rows, int64_t n,
               bool relu, T* to, int64_t to_stride) {
  ForIsa([=](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    for (int64_t r = 0; r < rows; ++r) {
      const From* const x = from + r * from_stride;
      T* const y = to + r * to_stride;
      int64_t i = 0;
      for (; i + Low::kSize <= n; i += Low::kSize) {
        alignas(64) float v[Low::kSize];
        Low::Load(x + i, v);
        if (relu) ReluOfLanes<Low>(v);
        if constexpr (std::is_same_v<From, T>) {
          Low::StoreExact(v, y + i);
        } else {
          Low::Store(v, y + i);
        }
      }
      for (; i < n; ++i) {
        const float v = static_cast<float>(x[i]);
        y[i] = static_cast<T>(relu ? functors::ReluOp()(v) : v);
      }
    }
  });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_STORE_ROWS_H_

// Square blocks of matrices, transposed in registers.
#ifndef HALFTONE_KERNELS_CPU_TRANSPOSE_H_
#define HALFTONE_KERNELS_CPU_TRANSPOSE_H_

#include <cstdint>

#include "absl/base/attributes.h"

namespace halftone {
namespace kernels {

inline constexpr int kTransposed = 8;  // rows and columns

// Of two vectors of eight, runs of kRun elements: the even ones of a and b in
// turn, and the odd ones.
template <int kRun, typename V>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Deal(const V& a, const V& b, V* even,
                                              V* odd) {
  static_assert(kRun == 1 || kRun == 2 || kRun == 4, "a half at most");
  if constexpr (kRun == 1) {
    *even = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    *odd = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  } else if constexpr (kRun == 2) {
    *even = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    *odd = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  } else {
    *even = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    *odd = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// For bodies of ForIsa (isa.h): kTransposed rows and columns from `in` to
// `out`.
template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TransposeBlock(const T* in,
                                                        int64_t in_stride,
                                                        T* out,
                                                        int64_t out_stride) {
  typedef T Values __attribute__((vector_size(kTransposed * sizeof(T))));
  typedef T Stored __attribute__((vector_size(kTransposed * sizeof(T)),
                                  aligned(sizeof(T)), may_alias));
  Values a[kTransposed], b[kTransposed];
#pragma GCC unroll 8
  for (int i = 0; i < kTransposed; ++i) {
    a[i] = *reinterpret_cast<const Stored*>(in + i * in_stride);
  }
  // What lies 1, 2 and 4 off the diagonal changes places.
#pragma GCC unroll 4
  for (int i = 0; i < kTransposed; i += 2) {
    Deal<1>(a[i], a[i + 1], &b[i], &b[i + 1]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kTransposed / 2; ++k) {
    const int i = k / 2 * 4 + k % 2;
    Deal<2>(b[i], b[i + 2], &a[i], &a[i + 2]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kTransposed / 2; ++i) {
    Deal<4>(a[i], a[i + 4], &b[i], &b[i + 4]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTransposed; ++i) {
    *reinterpret_cast<Stored*>(out + i * out_stride) = b[i];
  }
}
// A row of 64 bytes is two registers: more than there are.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TransposeBlock(const uint64_t* in,
                                                        int64_t in_stride,
                                                        uint64_t* out,
                                                        int64_t out_stride) {
#pragma GCC unroll 1
  for (int r = 0; r < kTransposed; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kTransposed; ++c) {
      out[r * out_stride + c] = in[c * in_stride + r];
    }
  }
}

// Likewise, of kSide rows and columns, a multiple of kTransposed.
template <int kSide, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TransposeSquare(const T* in,
                                                         int64_t in_stride,
                                                         T* out,
                                                         int64_t out_stride) {
  for (int r = 0; r < kSide; r += kTransposed) {
    for (int c = 0; c < kSide; c += kTransposed) {
      TransposeBlock(in + r * in_stride + c, in_stride,
                     out + c * out_stride + r, out_stride);
    }
  }
}

// Likewise, of any number of rows and columns.
template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TransposeMatrix(
    const T* in, int64_t in_stride, int64_t rows, int64_t columns, T* out,
    int64_t out_stride) {
  const int64_t whole_rows = rows / kTransposed * kTransposed;
  const int64_t whole_columns = columns / kTransposed * kTransposed;
  for (int64_t r = 0; r < whole_rows; r += kTransposed) {
    for (int64_t c = 0; c < whole_columns; c += kTransposed) {
      TransposeBlock(in + r * in_stride + c, in_stride,
                     out + c * out_stride + r, out_stride);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      out[c * out_stride + r] = in[r * in_stride + c];
    }
  }
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_TRANSPOSE_H_

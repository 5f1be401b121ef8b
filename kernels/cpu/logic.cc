// Comparisons, logical ops and the choice between two tensors.
#include "kernels/functors/logic.h"

#include <algorithm>
#include <functional>

#include "kernels/common/broadcast.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/shapes.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/functors/cast.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// What storage is compared as: 16-bit floats are widened.
template <typename T>
struct ComparedAs {
  using type = T;
};
template <>
struct ComparedAs<half> {
  using type = float;
};
template <>
struct ComparedAs<bfloat16> {
  using type = float;
};

// ---- Predicates.

// A row of n <= kConvertBlock; strides in elements.
template <typename C, typename F>
void CompareRow(const C* x, int64_t x_stride, const C* y, int64_t y_stride,
                bool* out, int64_t n) {
  const F f;
  if (x_stride == 1 && y_stride == 1) {
    ForIsa([=] {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
    });
  } else if (x_stride == 1 && y_stride == 0) {
    ForIsa([=, to = *y] {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], to);
    });
  } else if (x_stride == 0 && y_stride == 1) {
    // Three forms take long to compile.
    alignas(64) C repeated[kConvertBlock];
    std::fill_n(repeated, n, *x);
    CompareRow<C, F>(repeated, 1, y, 1, out, n);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = f(x[i * x_stride], y[i * y_stride]);
    }
  }
}

// Whole vectors of n 16-bit floats, converted in registers: how many elements
// they are. kYStride is 1 or, of one number, 0.
template <typename F, int kYStride, typename T>
int64_t CompareLow(const T* x, const T* y, bool* out, int64_t n) {
  constexpr int64_t kMost = LowVector<Isa::kAvx512>::kSize;
  const int64_t whole = n / kMost * kMost;
  ForIsa([=](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    constexpr int kSize = Low::kSize;
    const F f;
    float a[kSize], b[kSize];
    if constexpr (kYStride == 0) {
      const float number = static_cast<float>(*y);
      for (int j = 0; j < kSize; ++j) b[j] = number;
    }
    for (int64_t i = 0; i < whole; i += kSize) {
      Low::Load(x + i, a);
      if constexpr (kYStride != 0) Low::Load(y + i, b);
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
      for (int j = 0; j < kSize; ++j) out[i + j] = f(a[j], b[j]);
    }
  });
  return whole;
}

// Elements as what they are compared as: where they are, or in `buffer`, which
// changes the stride to 1.
template <typename T>
const typename ComparedAs<T>::type* Widened(
    const T* from, int64_t n, int64_t* stride,
    typename ComparedAs<T>::type* buffer) {
  using C = typename ComparedAs<T>::type;
  if constexpr (sizeof(C) == sizeof(T)) {
    return reinterpret_cast<const C*>(from);
  } else {
    if (*stride == 1) {
      ToFloat(from, buffer, n);
    } else {
      const int64_t count = *stride == 0 ? 1 : n;
      for (int64_t i = 0; i < count; ++i) {
        buffer[i] = static_cast<float>(from[i * *stride]);
      }
      if (*stride != 0) *stride = 1;
    }
    return buffer;
  }
}

// n <= kConvertBlock elements at x and y; strides in elements.
using CompareBlock = void (*)(const void* x, int64_t x_stride, const void* y,
                              int64_t y_stride, bool* out, int64_t n);
template <typename T, typename F>
void CompareBlockOf(const void* x_data, int64_t x_stride, const void* y_data,
                    int64_t y_stride, bool* out, int64_t n) {
  using C = typename ComparedAs<T>::type;
  const T* x = static_cast<const T*>(x_data);
  const T* y = static_cast<const T*>(y_data);
  alignas(64) C x_buffer[kConvertBlock];
  alignas(64) C y_buffer[kConvertBlock];
  if constexpr (functors::IsStorageFloat<T>::value) {
    int64_t done = 0;
    if (x_stride == 1 && y_stride == 1) {
      done = CompareLow<F, 1>(x, y, out, n);
    } else if (x_stride == 1 && y_stride == 0) {
      done = CompareLow<F, 0>(x, y, out, n);
    }
    x += done;
    y += done * y_stride;
    out += done;
    n -= done;
    if (n == 0) return;
  }
  const C* a = Widened(x, n, &x_stride, x_buffer);
  const C* b = Widened(y, n, &y_stride, y_buffer);
  CompareRow<C, F>(a, x_stride, b, y_stride, out, n);
}

// Of any type and predicate, which are in `compare`.
struct PredicateKernel {
  Broadcast<2> loops;
  int64_t elements;
  int64_t size;  // bytes of an input's element
  int first;     // of two: the input that is the functor's first operand
  bool negates;  // the second operand is 0
  CompareBlock compare;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    alignas(int64_t) static constexpr char kZero[sizeof(int64_t)] = {};
    const char* x = static_cast<const char*>(buffers.inputs[first]);
    const char* y =
        negates ? kZero : static_cast<const char*>(buffers.inputs[1 - first]);
    bool* out = static_cast<bool*>(buffers.outputs[0]);
    const int64_t x_stride = loops.stride(0), y_stride = loops.stride(1);
    ParallelFor(
        stream.threads(), elements, kMapGrain, [&](int64_t begin, int64_t end) {
          loops.ForRows(
              begin, end, [&](int64_t at, const auto& offsets, int64_t n) {
                ForBlocks(0, n, [&](int64_t done, int64_t count) {
                  compare(x + (offsets[0] + done * x_stride) * size, x_stride,
                          y + (offsets[1] + done * y_stride) * size, y_stride,
                          out + at + done, count);
                });
              });
        });
  }
};

// f of the op's inputs, swapped or not; without a second one of X and 0.
template <typename F>
Candidate MakePredicate(bool swaps) {
  return MakeCandidate("rows", [swaps](const BoundOp& op) {
    const TensorDesc& out = op.Output("Out");
    const DType dtype = op.Input("X").dtype;
    const bool negates = op.inputs().size() == 1;
    std::array<Extents, 2> strides = {StridesOf(out), Extents(out.rank(), 0)};
    if (!negates) {
      auto both = BinaryStrides(op);
      strides = {std::move(both.first), std::move(both.second)};
      if (swaps) std::swap(strides[0], strides[1]);
    }
    PredicateKernel kernel{Broadcast<2>(out, strides),
                           out.elements(),
                           SizeOf(dtype),
                           swaps ? 1 : 0,
                           negates,
                           nullptr};
    // Bools are compared as bytes.
    DispatchType(
        AnyTypes(), dtype == DType::kBool ? DType::kU8 : dtype, [&](auto tag) {
          kernel.compare = CompareBlockOf<typename decltype(tag)::type, F>;
        });
    return kernel;
  });
}

using Run = std::function<void(const Buffers&, runtime::Stream&)>;

// ---- where.

// `chosen` as bytes: a selection by bools is not vectorised.
template <typename T, int kXStride, int kYStride>
void ChooseRow(const bool* chosen, const T* x, const T* y, T* out, int64_t n) {
  ForIsa([=, by = reinterpret_cast<const uint8_t*>(chosen)] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T a = x[i * kXStride], b = y[i * kYStride];
      out[i] = by[i] != 0 ? a : b;
    }
  });
}

template <typename T>
struct WhereKernel {
  Broadcast<3> loops;
  int64_t elements;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const bool* condition = static_cast<const bool*>(buffers.inputs[0]);
    const T* x = static_cast<const T*>(buffers.inputs[1]);
    const T* y = static_cast<const T*>(buffers.inputs[2]);
    T* out = static_cast<T*>(buffers.outputs[0]);
    ParallelFor(
        stream.threads(), elements, kMapGrain, [&](int64_t begin, int64_t end) {
          loops.ForRows(begin, end,
                        [&](int64_t at, const auto& offsets, int64_t n) {
                          Row(condition + offsets[0], x + offsets[1],
                              y + offsets[2], out + at, n);
                        });
        });
  }

 private:
  void Row(const bool* chosen, const T* x, const T* y, T* out,
           int64_t n) const {
    const int64_t by = loops.stride(0);
    const int64_t x_stride = loops.stride(1), y_stride = loops.stride(2);
    if (by == 1 && x_stride == 1 && y_stride == 1) {
      ChooseRow<T, 1, 1>(chosen, x, y, out, n);
    } else if (by == 1 && x_stride == 1 && y_stride == 0) {
      ChooseRow<T, 1, 0>(chosen, x, y, out, n);
    } else if (by == 1 && x_stride == 0 && y_stride == 1) {
      ChooseRow<T, 0, 1>(chosen, x, y, out, n);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        out[i] = chosen[i * by] ? x[i * x_stride] : y[i * y_stride];
      }
    }
  }
};

Candidate MakeWhere() {
  return MakeCandidate("rows", [](const BoundOp& op) {
    const TensorDesc& out = op.Output("Out");
    std::array<Extents, 3> strides;
    for (int k = 0; k < 3; ++k) {
      const TensorDesc& in = op.inputs()[k];
      strides[k] = BroadcastStrides(in, out, out.rank() - in.rank());
    }
    const Broadcast<3> loops(out, strides);
    const int64_t n = out.elements();
    switch (SizeOf(out.dtype)) {
      case 1:
        return Run(WhereKernel<uint8_t>{loops, n});
      case 2:
        return Run(WhereKernel<uint16_t>{loops, n});
      case 4:
        return Run(WhereKernel<uint32_t>{loops, n});
      default:
        return Run(WhereKernel<uint64_t>{loops, n});
    }
  });
}

}  // namespace

void RegisterCpuLogic(KernelRegistry& registry) {
  functors::ForEachPredicate([&](const char* op, auto functor, bool swaps) {
    AddForSchema(registry, op, MakePredicate<decltype(functor)>(swaps));
  });
  AddForSchema(registry, "logical_not",
               MakePredicate<functors::EqualOp>(false));
  AddForSchema(registry, "where", MakeWhere());
}

}  // namespace kernels
}  // namespace halftone

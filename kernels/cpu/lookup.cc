// Rows by number, their gradient, and rows that others replace: numbers are
// sorted by counting, then each row of the result is made by itself.
#include "kernels/common/lookup.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "absl/types/span.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/functors/cast.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using Run = std::function<void(const Buffers&, runtime::Stream&)>;
using IndexTypes = TypeList<int64_t, int32_t>;

template <typename T>
T Nothing() {
  if constexpr (functors::IsStorageFloat<T>::value ||
                std::is_floating_point<T>::value) {
    return functors::Cast<T>(std::numeric_limits<double>::quiet_NaN());
  } else {
    return T();
  }
}

// ---- Gathers.

template <typename T, typename Index>
struct GatherKernel {
  LookupShape shape;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    const Index* index = static_cast<const Index*>(buffers.inputs[1]);
    T* out = static_cast<T*>(buffers.outputs[0]);
    if (shape.inner == 1 && shape.outer > 1) {
      return Elements(x, index, out, stream.threads());
    }
    const int64_t grain = std::max<int64_t>(
        1, kCopyGrain / (shape.inner * int64_t{sizeof(T)} + 1));
    ParallelFor(stream.threads(), shape.outer * shape.count, grain,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end;) {
                    const int64_t outer = i / shape.count;
                    const int64_t last =
                        std::min(end, (outer + 1) * shape.count);
                    const T* from = x + outer * shape.size * shape.inner;
                    const Index* at = index + i % shape.count;
                    for (; i < last; ++i, ++at) {
                      const int64_t slice = shape.SliceOf(*at);
                      Slice(from, slice, out + i * shape.inner);
                    }
                  }
                });
  }

 private:
  // Slices of one element: where each lies is found once for all rows.
  void Elements(const T* x, const Index* index, T* out, int threads) const {
    const int64_t grain = std::max<int64_t>(1, kMapGrain / (shape.count + 1));
    ParallelFor(threads, shape.outer, grain, [&](int64_t begin, int64_t end) {
      int64_t slices[kConvertBlock];
      ForBlocks(0, shape.count, [&](int64_t at, int64_t n) {
        bool plain = true;
        for (int64_t k = 0; k < n; ++k) {
          slices[k] = shape.SliceOf(index[at + k]);
          plain = plain && slices[k] >= 0 && slices[k] != shape.padding;
        }
        for (int64_t row = begin; row < end; ++row) {
          const T* from = x + row * shape.size;
          T* to = out + row * shape.count + at;
          if (plain) {
            for (int64_t k = 0; k < n; ++k) to[k] = from[slices[k]];
          } else {
            for (int64_t k = 0; k < n; ++k) Slice(from, slices[k], to + k);
          }
        }
      });
    });
  }

  void Slice(const T* from, int64_t slice, T* to) const {
    if (slice < 0) {
      std::fill_n(to, shape.inner, Nothing<T>());
    } else if (slice == shape.padding) {
      memset(static_cast<void*>(to), 0, shape.inner * sizeof(T));
    } else if (shape.inner == 1) {
      *to = from[slice];
    } else {
      memcpy(static_cast<void*>(to), from + slice * shape.inner,
             shape.inner * sizeof(T));
    }
  }
};

Candidate MakeGather() {
  return MakeCandidate("rows", [](const BoundOp& op) {
    Run run;
    DispatchType(AnyTypes(), op.inputs()[0].dtype, [&](auto tag) {
      DispatchType(IndexTypes(), op.inputs()[1].dtype, [&](auto index) {
        run = GatherKernel<typename decltype(tag)::type,
                           typename decltype(index)::type>{LookupShapeOf(op)};
      });
    });
    return run;
  });
}

// ---- gather_grad and scatter.

// Where each slice is named: places[first[s]] up to places[first[s + 1]], in
// their order.
struct Named {
  int64_t *first, *places;

  static int64_t Bytes(const LookupShape& shape) {
    return (shape.size + 1 + shape.count) * int64_t{sizeof(int64_t)};
  }

  template <typename Index>
  Named(const LookupShape& shape, const Index* index, void* workspace)
      : first(static_cast<int64_t*>(workspace)),
        places(first + shape.size + 1) {
    std::fill_n(first, shape.size + 1, 0);
    const auto slice = [&](int64_t i) {
      const int64_t s = shape.SliceOf(index[i]);
      return s == shape.padding ? -1 : s;
    };
    for (int64_t i = 0; i < shape.count; ++i) {
      if (slice(i) >= 0) ++first[slice(i) + 1];
    }
    for (int64_t s = 0; s < shape.size; ++s) first[s + 1] += first[s];
    for (int64_t i = 0; i < shape.count; ++i) {
      if (slice(i) >= 0) places[first[slice(i)]++] = i;
    }
    // Each now points to where the next begins.
    for (int64_t s = shape.size; s > 0; --s) first[s] = first[s - 1];
    first[0] = 0;
  }
  absl::Span<const int64_t> Of(int64_t slice) const {
    return {places + first[slice],
            static_cast<size_t>(first[slice + 1] - first[slice])};
  }
};

// The sum of rows of `inner` elements, of which `from` has `count` in each of
// its `outer` parts, in part o at `places`.
void AddUpRows(const LookupShape& shape, DType dtype, const void* from,
               int64_t o, absl::Span<const int64_t> places, char* to) {
  alignas(64) float sums[kConvertBlock];
  alignas(64) float buffer[kConvertBlock];
  ForBlocks(0, shape.inner, [&](int64_t column, int64_t columns) {
    std::fill_n(sums, columns, 0.0f);
    for (const int64_t place : places) {
      const int64_t at = (o * shape.count + place) * shape.inner + column;
      const float* x = LoadBlock(dtype, from, at, columns, buffer);
      ForIsa([x, columns, sum = &sums[0]] {
        for (int64_t i = 0; i < columns; ++i) sum[i] += x[i];
      });
    }
    FromFloat(dtype, sums, to + column * SizeOf(dtype), columns);
  });
}

template <typename Index>
struct GatherGradKernel {
  LookupShape shape;
  DType dtype;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const Named named(shape, static_cast<const Index*>(buffers.inputs[1]),
                      buffers.workspace);
    const int64_t grain = std::max<int64_t>(1, kMapGrain / (shape.inner + 1));
    ParallelFor(stream.threads(), shape.outer * shape.size, grain,
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    char* to = static_cast<char*>(buffers.outputs[0]) +
                               row * shape.inner * SizeOf(dtype);
                    const auto places = named.Of(row % shape.size);
                    if (places.empty()) {
                      memset(to, 0, shape.inner * SizeOf(dtype));
                    } else {
                      AddUpRows(shape, dtype, buffers.inputs[2],
                                row / shape.size, places, to);
                    }
                  }
                });
  }
};

int64_t NamedBytes(const BoundOp& op) {
  return Named::Bytes(LookupShapeOf(op));
}

Candidate MakeGatherGrad() {
  Candidate candidate = MakeCandidate("sorted", [](const BoundOp& op) {
    Run run;
    DispatchType(IndexTypes(), op.Input("Index").dtype, [&](auto tag) {
      run = GatherGradKernel<typename decltype(tag)::type>{
          LookupShapeOf(op), op.Output("XGrad").dtype};
    });
    return run;
  });
  candidate.workspace_bytes = NamedBytes;
  return candidate;
}

template <typename T, typename Index>
struct ScatterKernel {
  LookupShape shape;
  bool overwrite;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const Named named(shape, static_cast<const Index*>(buffers.inputs[1]),
                      buffers.workspace);
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    const T* updates = static_cast<const T*>(buffers.inputs[2]);
    T* out = static_cast<T*>(buffers.outputs[0]);
    const int64_t n = shape.inner;
    const int64_t grain =
        std::max<int64_t>(1, kCopyGrain / (n * int64_t{sizeof(T)} + 1));
    ParallelFor(stream.threads(), shape.outer * shape.size, grain,
                [&](int64_t begin, int64_t end) {
                  int64_t copied = begin;  // rows up to `row` are still to be
                  const auto copy = [&](int64_t row) {
                    memcpy(static_cast<void*>(out + copied * n), x + copied * n,
                           (row - copied) * n * sizeof(T));
                    copied = row + 1;
                  };
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t o = row / shape.size;
                    const auto places = named.Of(row % shape.size);
                    if (places.empty()) continue;
                    copy(row);
                    T* to = out + row * n;
                    if (overwrite || places.size() == 1) {
                      std::copy_n(
                          updates + (o * shape.count + places.back()) * n, n,
                          to);
                    } else {
                      Sum(updates, o, places, to);
                    }
                  }
                  copy(end);
                });
  }

 private:
  void Sum(const T* updates, int64_t o, absl::Span<const int64_t> places,
           T* to) const {
    if constexpr (functors::IsStorageFloat<T>::value ||
                  std::is_same<T, float>::value) {
      AddUpRows(shape, DTypeOf<T>(), updates, o, places,
                reinterpret_cast<char*>(to));
    } else {
      std::fill_n(to, shape.inner, T());
      for (const int64_t place : places) {
        const T* from = updates + (o * shape.count + place) * shape.inner;
        for (int64_t i = 0; i < shape.inner; ++i) to[i] = to[i] + from[i];
      }
    }
  }
};

Candidate MakeScatter() {
  Candidate candidate = MakeCandidate("sorted", [](const BoundOp& op) {
    Run run;
    DispatchType(AnyTypes(), op.Input("X").dtype, [&](auto tag) {
      DispatchType(IndexTypes(), op.Input("Ids").dtype, [&](auto index) {
        run = ScatterKernel<typename decltype(tag)::type,
                            typename decltype(index)::type>{
            LookupShapeOf(op), op.Bool("overwrite")};
      });
    });
    return run;
  });
  candidate.workspace_bytes = NamedBytes;
  return candidate;
}

// ---- take_along_axis and its gradient.

template <typename T, typename Index>
struct TakeKernel {
  LookupShape shape;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const T* x = static_cast<const T*>(buffers.inputs[0]);
    const Index* index = static_cast<const Index*>(buffers.inputs[1]);
    T* out = static_cast<T*>(buffers.outputs[0]);
    const int64_t inner = shape.inner, rows = shape.outer * shape.count;
    const int64_t grain = std::max<int64_t>(1, kMapGrain / (inner + 1));
    ParallelFor(stream.threads(), rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row / shape.count * shape.size * inner;
        for (int64_t i = row * inner; i < (row + 1) * inner; ++i) {
          const int64_t slice = shape.SliceOf(index[i]);
          out[i] =
              slice < 0 ? Nothing<T>() : from[slice * inner + i - row * inner];
        }
      }
    });
  }
};

Candidate MakeTake() {
  return MakeCandidate("columns", [](const BoundOp& op) {
    Run run;
    DispatchType(AnyTypes(), op.Input("Input").dtype, [&](auto tag) {
      DispatchType(IndexTypes(), op.Input("Index").dtype, [&](auto index) {
        run = TakeKernel<typename decltype(tag)::type,
                         typename decltype(index)::type>{LookupShapeOf(op)};
      });
    });
    return run;
  });
}

// Workspace: sums in f32, each thread's outer slices by itself.
template <typename Index>
struct TakeGradKernel {
  LookupShape shape;
  DType dtype;

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const Index* index = static_cast<const Index*>(buffers.inputs[1]);
    float* sums = static_cast<float*>(buffers.workspace);
    char* out = static_cast<char*>(buffers.outputs[0]);
    const int64_t to = shape.size * shape.inner;
    const int64_t from = shape.count * shape.inner;
    const int64_t grain = std::max<int64_t>(1, kMapGrain / (to + from + 1));
    ParallelFor(
        stream.threads(), shape.outer, grain, [&](int64_t begin, int64_t end) {
          for (int64_t o = begin; o < end; ++o) {
            std::fill_n(sums + o * to, to, 0.0f);
            Add(index + o * from, buffers.inputs[2], o * from, sums + o * to);
            ForBlocks(o * to, (o + 1) * to, [&](int64_t at, int64_t n) {
              FromFloat(dtype, sums + at, out + at * SizeOf(dtype), n);
            });
          }
        });
  }

 private:
  void Add(const Index* index, const void* grad, int64_t first,
           float* sums) const {
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(0, shape.count * shape.inner, [&](int64_t at, int64_t n) {
      const float* x = LoadBlock(dtype, grad, first + at, n, buffer);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t slice = shape.SliceOf(index[at + i]);
        if (slice < 0) continue;
        sums[slice * shape.inner + (at + i) % shape.inner] += x[i];
      }
    });
  }
};

Candidate MakeTakeGrad() {
  Candidate candidate = MakeCandidate("columns", [](const BoundOp& op) {
    Run run;
    DispatchType(IndexTypes(), op.Input("Index").dtype, [&](auto tag) {
      run = TakeGradKernel<typename decltype(tag)::type>{
          LookupShapeOf(op), op.Output("InputGrad").dtype};
    });
    return run;
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return op.Output("InputGrad").elements() * int64_t{sizeof(float)};
  };
  return candidate;
}

// ---- one_hot_v2.

using OneHotTypes = TypeList<float, half, bfloat16, int32_t, int64_t>;

template <typename T, typename Index>
Run OneHot(const BoundOp& op) {
  return [depth = op.Int("depth"), n = op.Input("X").elements()](
             const Buffers& buffers, runtime::Stream&) {
    const Index* classes = static_cast<const Index*>(buffers.inputs[0]);
    T* out = static_cast<T*>(buffers.outputs[0]);
    memset(static_cast<void*>(out), 0, n * depth * sizeof(T));
    for (int64_t i = 0; i < n; ++i) {
      if (classes[i] < 0 || classes[i] >= depth) continue;
      out[i * depth + classes[i]] = functors::Cast<T>(1.0f);
    }
  };
}

Candidate MakeOneHot() {
  return MakeCandidate("rows", [](const BoundOp& op) {
    Run run;
    DispatchType(OneHotTypes(), op.Output("Out").dtype, [&](auto tag) {
      DispatchType(IndexTypes(), op.Input("X").dtype, [&](auto index) {
        run = OneHot<typename decltype(tag)::type,
                     typename decltype(index)::type>(op);
      });
    });
    return run;
  });
}

}  // namespace

void RegisterCpuLookups(KernelRegistry& registry) {
  for (const char* op : {"lookup_table_v2", "gather", "index_select"}) {
    AddForSchema(registry, op, MakeGather());
  }
  AddForSchema(registry, "gather_grad", MakeGatherGrad());
  AddForSchema(registry, "scatter", MakeScatter());
  AddForSchema(registry, "take_along_axis", MakeTake());
  AddForSchema(registry, "take_along_axis_grad", MakeTakeGrad());
  AddForSchema(registry, "one_hot_v2", MakeOneHot());
}

}  // namespace kernels
}  // namespace halftone

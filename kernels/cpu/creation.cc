// Initial values by logical row-major element, and counts of elements.
#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

#include "graph/base/philox.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/fill_value.h"
#include "kernels/common/settings.h"
#include "kernels/common/strides.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/random.h"
#include "kernels/functors/cast.h"
#include "kernels/functors/random.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// ---- Distributions: f(key, first, n, to) gives elements [first, first + n).

struct Uniform {
  float low, high;
  explicit Uniform(const BoundOp& op)
      : low(static_cast<float>(op.Float("low"))),
        high(static_cast<float>(op.Float("high"))) {}
  void operator()(uint64_t key, int64_t first, int64_t n, float* to) const {
    alignas(64) uint32_t words[kConvertBlock + 8];
    const uint32_t* bits = DrawBits(key, 0, 0, first, n, words);
    const float width = high - low;
    for (int64_t i = 0; i < n; ++i) to[i] = low + width * ToUniform(bits[i]);
  }
};

template <double (*kElement)(uint64_t, uint32_t)>
struct Normal {
  double mean, deviation;
  explicit Normal(const BoundOp& op)
      : mean(op.Float("mean")), deviation(op.Float("std")) {}
  void operator()(uint64_t key, int64_t first, int64_t n, float* to) const {
    for (int64_t i = 0; i < n; ++i) {
      const double z = kElement(key, static_cast<uint32_t>(first + i));
      to[i] = static_cast<float>(mean + deviation * z);
    }
  }
};

// ---- Where logical elements go.

// Stores logical elements [at, at + n) of a tensor.
class LogicalWriter {
 public:
  explicit LogicalWriter(const TensorDesc& out) : dtype_(out.dtype) {
    TensorDesc logical = out;
    logical.layout = Layout::kRowMajor;
    nest_ = MakeNest(logical, StridesOf(out));
  }

  void Store(const float* from, void* out, int64_t at, int64_t n) const {
    if (nest_.contiguous()) {
      char* to = static_cast<char*>(out) + at * SizeOf(dtype_);
      return FromFloat(dtype_, from, to, n);
    }
    DispatchType(FloatTypes(), dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      NestWalk walk(nest_, at);
      for (int64_t done = 0; done < n; ++done) {
        static_cast<T*>(out)[walk.offset()] = static_cast<T>(from[done]);
        walk.Advance(1);
      }
    });
  }

 private:
  DType dtype_;
  Nest nest_;
};

template <typename Distribution>
struct RandomKernel {
  Distribution distribution;
  LogicalWriter writer;
  uint32_t stream_id;
  int64_t elements;

  explicit RandomKernel(const BoundOp& op)
      : distribution(op),
        writer(op.outputs()[0]),
        stream_id(static_cast<uint32_t>(op.Int("stream"))),
        elements(op.outputs()[0].elements()) {}

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const int64_t seed = *static_cast<const int64_t*>(buffers.inputs[0]);
    const uint64_t key = PhiloxKey(static_cast<uint64_t>(seed), stream_id);
    ParallelFor(stream.threads(), elements, kConvertBlock,
                [&](int64_t begin, int64_t end) {
                  alignas(64) float values[kConvertBlock];
                  ForBlocks(begin, end, [&](int64_t at, int64_t n) {
                    distribution(key, at, n, values);
                    writer.Store(values, buffers.outputs[0], at, n);
                  });
                });
  }
};

template <typename Distribution>
void AddRandom(KernelRegistry& registry, absl::string_view op) {
  AddForSchema(registry, op, MakeCandidate("philox", [](const BoundOp& bound) {
                 return RandomKernel<Distribution>(bound);
               }));
}

auto MakeConstant(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  std::function<void(void*, int64_t, int64_t)> fill;
  DispatchType(AnyTypes(), out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // A class is not filled in vectors.
    using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, T>;
    const T value = FillValue<T>(op);
    Bits bits;
    std::memcpy(&bits, &value, sizeof(bits));
    fill = [bits](void* to, int64_t begin, int64_t end) {
      ForIsa([first = static_cast<Bits*>(to) + begin, n = end - begin, bits] {
        std::fill_n(first, n, bits);
      });
    };
  });
  return [fill, n = out.elements()](const Buffers& buffers,
                                    runtime::Stream& stream) {
    ParallelFor(stream.threads(), n, kMapGrain,
                [&](int64_t begin, int64_t end) {
                  fill(buffers.outputs[0], begin, end);
                });
  };
}

using NumberTypes = TypeList<int64_t, int32_t, float, half, bfloat16>;

auto MakeArange(const BoundOp& op) {
  const TensorDesc& out = op.outputs()[0];
  std::function<void(void*)> fill;
  DispatchType(NumberTypes(), out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill = [n = out.elements(), start = op.Float("start"),
            step = op.Float("step")](void* to) {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(to)[i] =
            functors::Cast<T>(start + static_cast<double>(i) * step);
      }
    };
  });
  return [fill](const Buffers& buffers, runtime::Stream&) {
    fill(buffers.outputs[0]);
  };
}

auto MakeShape(const BoundOp& op) {
  return [dims = op.Input("Input").dims](const Buffers& buffers,
                                         runtime::Stream&) {
    for (size_t i = 0; i < dims.size(); ++i) {
      static_cast<int32_t*>(buffers.outputs[0])[i] =
          static_cast<int32_t>(dims[i]);
    }
  };
}

auto MakeElementCount(const BoundOp& op) {
  const float count = static_cast<float>(ElementCount(op));
  return [count](const Buffers& buffers, runtime::Stream&) {
    *static_cast<float*>(buffers.outputs[0]) = count;
  };
}

}  // namespace

void RegisterCpuCreation(KernelRegistry& registry) {
  AddForSchema(registry, "fill_constant", MakeCandidate("fill", MakeConstant));
  AddRandom<Uniform>(registry, "init_uniform");
  AddRandom<Normal<functors::NormalElement>>(registry, "init_normal");
  AddRandom<Normal<functors::TruncatedNormalElement>>(registry,
                                                      "init_truncated_normal");
  AddForSchema(registry, "arange", MakeCandidate("fill", MakeArange));
  AddForSchema(registry, "shape", MakeCandidate("fill", MakeShape));
  AddForSchema(registry, "element_count",
               MakeCandidate("scalar", MakeElementCount));
}

}  // namespace kernels
}  // namespace halftone

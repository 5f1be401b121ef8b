// Preparation of images: (x - mean) / std per channel.
#include <algorithm>
#include <vector>

#include "kernels/common/settings.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Channels with numbers of their own; they travel as a kernel parameter.
constexpr int kMost = 256;

struct NormalizeBody {
  DType in, out;
  const void* x;
  void* out_data;
  Divider plane, channels;  // pixels of a plane; planes of an image
  float mean[kMost], deviation[kMost];

  template <int V>
  struct Loaded {
    float x[V];
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    if (in == DType::kU8) {
      LoadAsFloats<V, uint8_t>(i, loaded.x);
    } else if (in == DType::kI32) {
      LoadAsFloats<V, int32_t>(i, loaded.x);
    } else {
      LoadAsFloats<V, float>(i, loaded.x);
    }
  }
  // A vector lies within one plane.
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    const int64_t channel = channels.Remainder(plane.Divide(i));
    float a[V];
#pragma unroll
    for (int k = 0; k < V; ++k) {
      a[k] = (loaded.x[k] - mean[channel]) / deviation[channel];
    }
    StoreVector(out, out_data, i, a);
  }

 private:
  template <typename T, int V>
  struct alignas(sizeof(T) * V) Elements {
    T at[V];
  };
  template <int V, typename T>
  HT_DEVICE void LoadAsFloats(int64_t i, float (&to)[V]) const {
    const auto elements = LoadAs<Elements<T, V>>(x, i * int64_t{sizeof(T)});
#pragma unroll
    for (int k = 0; k < V; ++k) to[k] = static_cast<float>(elements.at[k]);
  }
};

Candidate MakeNormalize() {
  Candidate candidate = CudaCandidate("vector", [](const BoundOp& op) {
    const TensorDesc& x = op.Input("X");
    const int64_t pixels = x.dims[2] * x.dims[3];
    // One number for all channels is one channel's.
    const int64_t channels = static_cast<int64_t>(
        std::max(op.Floats("mean").size(), op.Floats("std").size()));
    const std::vector<float> mean = PerChannel(op.Floats("mean"), channels);
    const std::vector<float> deviation = PerChannel(op.Floats("std"), channels);
    NormalizeBody body = {};
    body.in = x.dtype;
    body.out = op.Output("Out").dtype;
    body.plane = Divider(std::max<int64_t>(1, pixels));
    body.channels = Divider(channels);
    std::copy(mean.begin(), mean.end(), body.mean);
    std::copy(deviation.begin(), deviation.end(), body.deviation);
    return
        [body, pixels, n = x.elements()](const Buffers& b, Launcher& launch) {
          NormalizeBody bound = body;
          bound.x = b.inputs[0];
          bound.out_data = b.outputs[0];
          const bool vectors =
              pixels % 4 == 0 && Aligned({bound.x, bound.out_data});
          MapNarrow(launch, bound, n, vectors);
        };
  });
  candidate.supports = [](const BoundOp& op) {
    return op.Floats("mean").size() <= kMost &&
           op.Floats("std").size() <= kMost;
  };
  return candidate;
}

}  // namespace

void RegisterCudaImage(KernelRegistry& registry) {
  AddForSchema(registry, "image_normalize", MakeNormalize());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

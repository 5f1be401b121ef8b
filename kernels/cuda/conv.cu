// Convolutions and their gradients as plain sums: a thread for each element of
// the result, which adds its products in the order of the CPU's reference.
// cuDNN is preferred; this is for the shapes that it has no engine for.
#include "kernels/common/conv_shape.h"
#include "kernels/cuda/convs.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// A tensor of up to three spatial dims in any layout.
struct ConvTensor {
  DType dtype = DType::kInvalid;
  VolumeStrides strides;
  const void* data = nullptr;

  ConvTensor() = default;
  explicit ConvTensor(const TensorDesc& desc)
      : dtype(desc.dtype), strides(VolumeStridesOf(desc)) {}
  HT_DEVICE float At(int64_t a, int64_t b, int64_t z, int64_t y,
                     int64_t x) const {
    const int64_t* const s = strides.of;
    return LoadOne(dtype, data,
                   a * s[0] + b * s[1] + z * s[2] + y * s[3] + x * s[4]);
  }
};

// From a position in memory to the indices there.
struct ConvIndex {
  Divider inner[4];  // innermost last
  bool channels_last = false;

  ConvIndex() = default;
  explicit ConvIndex(const TensorDesc& desc)
      : channels_last(desc.layout == Layout::kChannelsLast) {
    int64_t sizes[4] = {desc.dims[1], 1, 1, 1};
    for (int i = 2; i < desc.rank(); ++i)
      sizes[i + 4 - desc.rank()] = desc.dims[i];
    const int order[2][4] = {{0, 1, 2, 3}, {1, 2, 3, 0}};
    for (int i = 0; i < 4; ++i) {
      const int64_t size = sizes[order[channels_last][i]];
      inner[i] = Divider(size > 0 ? size : 1);
    }
  }
  struct Place {
    int64_t outer, channel, at[3];
  };
  HT_DEVICE Place Of(int64_t i) const {
    int64_t digits[4];
#pragma unroll
    for (int k = 3; k >= 0; --k) {
      const int64_t rest = inner[k].Divide(i);
      digits[k] = i - rest * inner[k].divisor();
      i = rest;
    }
    if (channels_last) {
      return {i, digits[3], {digits[0], digits[1], digits[2]}};
    }
    return {i, digits[0], {digits[1], digits[2], digits[3]}};
  }
};

// What all three have; each has its own Sum.
struct ConvCall {
  ConvShape shape;
  ConvIndex index;  // of what is computed
  ConvTensor image, filter, result;
  DType dtype = DType::kInvalid;  // of what is computed
  void* out = nullptr;
  const void* bias = nullptr;
  DType bias_dtype = DType::kInvalid;
};

struct ForwardSum {
  HT_DEVICE static float Of(const ConvCall& call, const ConvIndex::Place& at) {
    const ConvShape& s = call.shape;
    const ConvDim &d = s.volume[0], &h = s.volume[1], &w = s.volume[2];
    const int64_t first = at.channel / s.filters * s.channels;
    float sum = 0;
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t k = 0; k < d.filter; ++k) {
        const int64_t z = d.At(at.at[0], k);
        if (z < 0 || z >= d.image) continue;
        for (int64_t i = 0; i < h.filter; ++i) {
          const int64_t y = h.At(at.at[1], i);
          if (y < 0 || y >= h.image) continue;
          for (int64_t j = 0; j < w.filter; ++j) {
            const int64_t x = w.At(at.at[2], j);
            if (x < 0 || x >= w.image) continue;
            sum += call.image.At(at.outer, first + c, z, y, x) *
                   call.filter.At(at.channel, c, k, i, j);
          }
        }
      }
    }
    return sum;
  }
};

struct ImageGradSum {
  HT_DEVICE static float Of(const ConvCall& call, const ConvIndex::Place& at) {
    const ConvShape& s = call.shape;
    const ConvDim &d = s.volume[0], &h = s.volume[1], &w = s.volume[2];
    const int64_t group = at.channel / s.channels;
    const int64_t c = at.channel - group * s.channels;
    float sum = 0;
    for (int64_t o = group * s.filters; o < (group + 1) * s.filters; ++o) {
      // The last tap belongs to the first window.
      for (int64_t k = d.filter - 1; k >= 0; --k) {
        const int64_t z = d.WindowAt(at.at[0], k);
        if (z < 0) continue;
        for (int64_t i = h.filter - 1; i >= 0; --i) {
          const int64_t y = h.WindowAt(at.at[1], i);
          if (y < 0) continue;
          for (int64_t j = w.filter - 1; j >= 0; --j) {
            const int64_t x = w.WindowAt(at.at[2], j);
            if (x < 0) continue;
            sum += call.result.At(at.outer, o, z, y, x) *
                   call.filter.At(o, c, k, i, j);
          }
        }
      }
    }
    return sum;
  }
};

struct FilterGradSum {
  HT_DEVICE static float Of(const ConvCall& call, const ConvIndex::Place& at) {
    const ConvShape& s = call.shape;
    const ConvDim &d = s.volume[0], &h = s.volume[1], &w = s.volume[2];
    const int64_t o = at.outer;
    const int64_t c = o / s.filters * s.channels + at.channel;
    float sum = 0;
    for (int64_t n = 0; n < s.samples; ++n) {
      for (int64_t z = 0; z < d.result; ++z) {
        const int64_t slice = d.At(z, at.at[0]);
        if (slice < 0 || slice >= d.image) continue;
        for (int64_t y = 0; y < h.result; ++y) {
          const int64_t row = h.At(y, at.at[1]);
          if (row < 0 || row >= h.image) continue;
          for (int64_t x = 0; x < w.result; ++x) {
            const int64_t column = w.At(x, at.at[2]);
            if (column < 0 || column >= w.image) continue;
            sum += call.result.At(n, o, z, y, x) *
                   call.image.At(n, c, slice, row, column);
          }
        }
      }
    }
    return sum;
  }
};

template <typename Sum>
struct ConvBody {
  ConvCall call;

  template <int V>
  struct Loaded {};
  template <int V>
  HT_DEVICE void Load(int64_t, Loaded<V>&) const {}
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>&) const {
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const ConvIndex::Place at = call.index.Of(i + k);
      float sum = Sum::Of(call, at);
      if (call.bias != nullptr) {
        sum += LoadOne(call.bias_dtype, call.bias, at.channel);
      }
      StoreOne(call.dtype, call.out, i + k, sum);
    }
  }
};

template <typename Sum>
auto MakeDirect(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  ConvCall call;
  call.shape = conv.shape;
  call.index = ConvIndex(op.outputs()[0]);
  call.dtype = op.outputs()[0].dtype;
  call.image = ConvTensor(conv.image_desc);
  call.filter = ConvTensor(conv.filter_desc);
  call.result = ConvTensor(conv.result_desc);
  if (conv.bias >= 0) call.bias_dtype = op.inputs()[conv.bias].dtype;
  return [conv, call, n = op.outputs()[0].elements()](const Buffers& b,
                                                      Launcher& launch) {
    ConvBody<Sum> body{call};
    const auto data = [&](ConvResult which, int position) {
      return conv.computed == which ? nullptr : b.inputs[position];
    };
    body.call.image.data = data(ConvResult::kImage, conv.image);
    body.call.filter.data = data(ConvResult::kFilter, conv.filter);
    body.call.result.data = data(ConvResult::kResult, conv.result);
    if (conv.bias >= 0) body.call.bias = b.inputs[conv.bias];
    body.call.out = b.outputs[0];
    LaunchMap<1, 1>(launch, body, n);
  };
}

}  // namespace

void RegisterCudaConv(KernelRegistry& registry) {
  const Candidate forward = CudaCandidate("direct", MakeDirect<ForwardSum>);
  const Candidate image = CudaCandidate("direct", MakeDirect<ImageGradSum>);
  const Candidate filter = CudaCandidate("direct", MakeDirect<FilterGradSum>);
  AddCudaConvs(registry, {{forward}, {image}, {image}, {filter}});
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

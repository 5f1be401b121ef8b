// Convolutions and their gradients as plain sums: a thread for each element of
// the result, which adds its products in the order of the CPU's reference.
// cuDNN is preferred; this is for the shapes that it has no engine for.
#include "kernels/common/conv_shape.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// A tensor of 4 dims in either layout.
struct ConvTensor {
  DType dtype = DType::kInvalid;
  int64_t strides[4] = {};
  const void* data = nullptr;

  ConvTensor() = default;
  explicit ConvTensor(const TensorDesc& desc) : dtype(desc.dtype) {
    const Extents lie = StridesOf(desc);
    for (int i = 0; i < 4; ++i) strides[i] = lie[i];
  }
  HT_DEVICE float At(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return LoadOne(
        dtype, data,
        a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]);
  }
};

// From a position in memory to the four indices there.
struct ConvIndex {
  Divider inner[3];
  bool channels_last = false;

  ConvIndex() = default;
  explicit ConvIndex(const TensorDesc& desc)
      : channels_last(desc.layout == Layout::kChannelsLast) {
    const int order[2][3] = {{1, 2, 3}, {2, 3, 1}};
    for (int i = 0; i < 3; ++i) {
      const int64_t size = desc.dims[order[channels_last][i]];
      inner[i] = Divider(size > 0 ? size : 1);
    }
  }
  struct Place {
    int64_t outer, channel, row, column;
  };
  HT_DEVICE Place Of(int64_t i) const {
    const int64_t a = inner[2].Divide(i);
    const int64_t b = inner[1].Divide(a);
    const int64_t c = inner[0].Divide(b);
    const int64_t last = i - a * inner[2].divisor();
    const int64_t middle = a - b * inner[1].divisor();
    const int64_t first = b - c * inner[0].divisor();
    if (channels_last) return {c, last, first, middle};
    return {c, first, middle, last};
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
    const int64_t first = at.channel / s.filters * s.channels;
    float sum = 0;
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t i = 0; i < s.h.filter; ++i) {
        const int64_t y = s.h.At(at.row, i);
        if (y < 0 || y >= s.h.image) continue;
        for (int64_t j = 0; j < s.w.filter; ++j) {
          const int64_t x = s.w.At(at.column, j);
          if (x < 0 || x >= s.w.image) continue;
          sum += call.image.At(at.outer, first + c, y, x) *
                 call.filter.At(at.channel, c, i, j);
        }
      }
    }
    if (call.bias == nullptr) return sum;
    return sum + LoadOne(call.bias_dtype, call.bias, at.channel);
  }
};

struct ImageGradSum {
  HT_DEVICE static float Of(const ConvCall& call, const ConvIndex::Place& at) {
    const ConvShape& s = call.shape;
    const int64_t group = at.channel / s.channels;
    const int64_t c = at.channel - group * s.channels;
    float sum = 0;
    for (int64_t o = group * s.filters; o < (group + 1) * s.filters; ++o) {
      // The last tap belongs to the first window.
      for (int64_t i = s.h.filter - 1; i >= 0; --i) {
        const int64_t y = s.h.WindowAt(at.row, i);
        if (y < 0) continue;
        for (int64_t j = s.w.filter - 1; j >= 0; --j) {
          const int64_t x = s.w.WindowAt(at.column, j);
          if (x < 0) continue;
          sum += call.result.At(at.outer, o, y, x) * call.filter.At(o, c, i, j);
        }
      }
    }
    return sum;
  }
};

struct FilterGradSum {
  HT_DEVICE static float Of(const ConvCall& call, const ConvIndex::Place& at) {
    const ConvShape& s = call.shape;
    const int64_t o = at.outer;
    const int64_t c = o / s.filters * s.channels + at.channel;
    float sum = 0;
    for (int64_t n = 0; n < s.samples; ++n) {
      for (int64_t y = 0; y < s.h.result; ++y) {
        const int64_t row = s.h.At(y, at.row);
        if (row < 0 || row >= s.h.image) continue;
        for (int64_t x = 0; x < s.w.result; ++x) {
          const int64_t column = s.w.At(x, at.column);
          if (column < 0 || column >= s.w.image) continue;
          sum += call.result.At(n, o, y, x) * call.image.At(n, c, row, column);
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
      StoreOne(call.dtype, call.out, i + k,
               Sum::Of(call, call.index.Of(i + k)));
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
  for (Layout layout : {Layout::kRowMajor, Layout::kChannelsLast}) {
    for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
      registry.Add("conv2d", {t}, layout, forward);
      registry.Add("depthwise_conv2d", {t}, layout, forward);
      registry.Add("conv2d_grad_input", {t}, layout, image);
      // cuDNN's filter gradients have the images' type.
      registry.Add("conv2d_grad_filter", {t, t}, layout, filter);
    }
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

// Transposed convolutions whose windows tile the result (U-Nets' have a stride
// of the filter's size): no two products meet in an element, so that they are a
// convolution with filters of 1 for each tap, spread over the result.
#include <algorithm>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/pool.h"

namespace halftone {
namespace kernels {
namespace {

using dnnl::memory;

bool Tiles(const ConvDim& dim) {
  return dim.stride == dim.filter && dim.dilation == 1 && dim.before == 0 &&
         dim.after == 0 && dim.image == dim.result * dim.filter;
}

bool IsLast(const ConvOp& conv) {
  return conv.image_desc.layout == Layout::kChannelsLast;
}

bool Tiles(const ConvOp& conv) {
  for (const ConvDim& dim : conv.shape.volume) {
    if (!Tiles(dim)) return false;
  }
  return conv.shape.groups == 1 &&
         conv.filter_desc.layout == conv.result_desc.layout &&
         conv.image_desc.layout == conv.result_desc.layout;
}

// The products, in f32: row-major [N][channels of the result][taps][...], which
// are in channels-last order [N][...][taps][channels of the result].
OnednnSpec Products(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  const int spatial = conv.shape.spatial;
  int64_t each = conv.shape.channels;
  for (const ConvDim& dim : conv.shape.volume) each *= dim.filter;
  OnednnSpec spec;
  OnednnOperand src =
      MakeOperand(DNNL_ARG_SRC, conv.result, false, conv.result_desc);
  const bool last = IsLast(conv);
  src.format = last ? OnednnFormat::kBestAsItLies : OnednnFormat::kAny;
  OnednnOperand weights = src, dst = src;
  weights.format = OnednnFormat::kAny;
  weights.arg = DNNL_ARG_WEIGHTS;
  weights.position = conv.filter;
  weights.dtype = conv.filter_desc.dtype;
  weights.dims.assign(spatial + 2, 1);
  weights.strides.assign(spatial + 2, 1);
  weights.dims[0] = each;
  weights.dims[1] = src.dims[1];
  weights.strides[1] = each;
  dst.arg = DNNL_ARG_DST;
  dst.output = true;
  dst.position = 0;
  dst.dtype = DType::kF32;
  dst.dims[1] = each;
  if (last) {
    for (int i = 0; i < spatial + 2; ++i) {
      if (i != 1) dst.strides[i] = src.strides[i] / src.dims[1] * each;
    }
  } else {
    dst.strides[0] = each * src.strides[1];
  }
  spec.operands = {src, weights, dst};
  spec.describe = [spatial](const dnnl::engine& engine,
                            const std::vector<memory::desc>& d,
                            const dnnl::primitive_attr& attr) {
    const memory::dims ones(spatial, 1), zeros(spatial, 0);
    return dnnl::convolution_forward::primitive_desc(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
         d[0], d[1], d[2], ones, zeros, zeros, zeros},
        attr, engine);
  };
  return spec;
}

// to[i * taps + k] = from[k][i] + bias of n neighbours.
void Interleave(const float* from, int64_t apart, int64_t taps, float bias,
                float* to, int64_t n) {
  ForIsa([=] {
    if (taps == 2) {
      const float* other = from + apart;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        to[2 * i] = from[i] + bias;
        to[2 * i + 1] = other[i] + bias;
      }
      return;
    }
    for (int64_t k = 0; k < taps; ++k) {
      const float* row = from + k * apart;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i * taps + k] = row[i] + bias;
    }
  });
}

// `bias`: null for none.
void AddBias(const float* from, const float* bias, float* to, int64_t n) {
  if (bias == nullptr) {
    std::copy_n(from, n, to);
    return;
  }
  ForIsa([=] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] + bias[i];
  });
}

class TilesInstance final : public KernelInstance {
 public:
  TilesInstance(const BoundOp& op, std::unique_ptr<KernelInstance> products,
                int64_t product_bytes)
      : conv_(ConvOp::Of(op)),
        products_(std::move(products)),
        product_bytes_(product_bytes) {
    if (conv_.bias >= 0) bias_dtype_ = op.inputs()[conv_.bias].dtype;
  }

  // Floats of the products; for each thread follow a row of the result and, of
  // channels-last images, the bias.
  static int64_t ProductFloats(const ConvOp& conv) {
    return conv.image_desc.elements();
  }
  static int64_t RowFloats(const ConvOp& conv) {
    const int64_t pixels = conv.shape.volume[2].image;
    return IsLast(conv) ? (pixels + 1) * conv.shape.channels : pixels;
  }

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    char* const workspace = static_cast<char*>(buffers.workspace);
    float* const made = reinterpret_cast<float*>(workspace + product_bytes_);
    void* const outputs[] = {made};
    HT_RETURN_IF_ERROR(
        products_->Enqueue({buffers.inputs, outputs, workspace}, stream));
    Spread(buffers, made, stream);
    return absl::OkStatus();
  }

 private:
  void Spread(const Buffers& buffers, const float* made,
              runtime::Stream& stream) const {
    const bool last = IsLast(conv_);
    const int64_t floats = std::max<int64_t>(
        1, conv_.shape.volume[2].image * (last ? conv_.shape.channels : 1));
    const int64_t rows = conv_.image_desc.elements() / floats;
    const int64_t grain = std::max<int64_t>(1, kMapGrain / floats);
    void* const scratch = const_cast<float*>(made) + ProductFloats(conv_);
    ForTasksWithScratch(stream.threads(), rows, grain, scratch,
                        RowFloats(conv_),
                        [&](int64_t begin, int64_t end, float* buffer) {
                          for (int64_t row = begin; row < end; ++row) {
                            if (last) {
                              SpreadPixels(buffers, made, row, buffer);
                            } else {
                              SpreadRow(buffers, made, row, buffer);
                            }
                          }
                        });
  }

  void SpreadRow(const Buffers& buffers, const float* made, int64_t row,
                 float* buffer) const {
    const ConvDim &d = conv_.shape.volume[0], &h = conv_.shape.volume[1],
                  &w = conv_.shape.volume[2];
    const int64_t y = row % h.image, z = row / h.image % d.image;
    const int64_t plane = row / h.image / d.image;  // sample and channel
    const int64_t channel = plane % conv_.shape.channels;
    const int64_t tap =
        (plane * d.filter + z % d.filter) * h.filter + y % h.filter;
    const int64_t pixels = d.result * h.result * w.result;
    const float* from = made + tap * w.filter * pixels +
                        (z / d.filter * h.result + y / h.filter) * w.result;
    const DType dtype = conv_.image_desc.dtype;
    float bias = 0;
    if (conv_.bias >= 0) {
      bias = *LoadBlock(bias_dtype_, buffers.inputs[conv_.bias], channel, 1,
                        &bias);
    }
    float* out = OutputBlock(dtype, buffers.outputs[0], row * w.image, buffer);
    Interleave(from, pixels, w.filter, bias, out, w.result);
    StoreBlock(dtype, out, buffers.outputs[0], row * w.image, w.image);
  }

  // A row of channels-last pixels: those of a row of taps are neighbours in
  // what was made, too.
  void SpreadPixels(const Buffers& buffers, const float* made, int64_t row,
                    float* buffer) const {
    const ConvDim &h = conv_.shape.volume[1], &w = conv_.shape.volume[2];
    const int64_t y = row % h.image, sample = row / h.image;
    const int64_t channels = conv_.shape.channels;
    const int64_t floats = w.filter * channels;
    const float* from =
        made + ((sample * h.result + y / h.filter) * w.result * h.filter +
                y % h.filter) *
                   floats;
    const DType dtype = conv_.image_desc.dtype;
    const int64_t begin = row * w.image * channels, n = w.image * channels;
    float* const out = OutputBlock(dtype, buffers.outputs[0], begin, buffer);
    const float* bias = nullptr;
    if (conv_.bias >= 0) {
      bias = LoadBlock(bias_dtype_, buffers.inputs[conv_.bias], 0, channels,
                       buffer + n);
    }
    for (int64_t x = 0; x < w.image; ++x) {
      const float* pixel =
          from + (x / w.filter * h.filter * w.filter + x % w.filter) * channels;
      AddBias(pixel, bias, out + x * channels, channels);
    }
    StoreBlock(dtype, out, buffers.outputs[0], begin, n);
  }

  ConvOp conv_;
  std::unique_ptr<KernelInstance> products_;
  int64_t product_bytes_;
  DType bias_dtype_ = DType::kF32;
};

Candidate TilesCandidate() {
  const Candidate products = OnednnCandidate("products", Products);
  Candidate candidate;
  candidate.name = "tiles";
  candidate.supports = [products](const BoundOp& op) {
    return Tiles(ConvOp::Of(op)) && products.supports(op);
  };
  candidate.workspace_bytes = [products](const BoundOp& op) {
    const ConvOp conv = ConvOp::Of(op);
    const int64_t floats =
        TilesInstance::ProductFloats(conv) +
        std::max(1, op.context().threads) * TilesInstance::RowFloats(conv);
    return products.workspace_bytes(op) + floats * int64_t{sizeof(float)};
  };
  candidate.prepare = [products](const BoundOp& op, runtime::Device& device)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    HT_ASSIGN_OR_RETURN(auto instance, products.prepare(op, device));
    return {std::make_unique<TilesInstance>(op, std::move(instance),
                                            products.workspace_bytes(op))};
  };
  return candidate;
}

}  // namespace

void RegisterCpuConvTiles(KernelRegistry& registry) {
  for (const char* op :
       {"conv1d_transpose", "conv2d_transpose", "conv3d_transpose"}) {
    for (const DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
      registry.Add(op, {t}, Layout::kRowMajor, TilesCandidate());
    }
  }
  for (const DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    registry.Add("conv2d_transpose", {t}, Layout::kChannelsLast,
                 TilesCandidate());
  }
}

}  // namespace kernels
}  // namespace halftone

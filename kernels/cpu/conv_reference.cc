#include "kernels/cpu/conv_reference.h"

#include <algorithm>
#include <string>

#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/reference.h"

namespace halftone {
namespace kernels {
namespace {

// An operand as [outer][inner][depth][height][width].
struct Volume {
  float* data;
  VolumeStrides strides;

  float& At(int64_t a, int64_t b, int64_t z, int64_t y, int64_t x) const {
    const int64_t* const s = strides.of;
    return data[a * s[0] + b * s[1] + z * s[2] + y * s[3] + x * s[4]];
  }
};

// All products of a convolution, each visited once, in a fixed order.
class Products {
 public:
  explicit Products(const BoundOp& op)
      : conv_(ConvOp::Of(op)),
        image_(VolumeStridesOf(conv_.image_desc)),
        filter_(VolumeStridesOf(conv_.filter_desc)),
        result_(VolumeStridesOf(conv_.result_desc)) {}

  // visit(image&, filter&, result&) over all elements that meet.
  template <typename Visit>
  void ForEach(const ReferenceCall& call, const Visit& visit) const {
    const ConvShape& shape = conv_.shape;
    const Volume image = {Data(call, ConvResult::kImage, conv_.image), image_};
    const Volume filter = {Data(call, ConvResult::kFilter, conv_.filter),
                           filter_};
    const Volume result = {Data(call, ConvResult::kResult, conv_.result),
                           result_};
    for (int64_t n = 0; n < shape.samples; ++n) {
      for (int64_t o = 0; o < shape.groups * shape.filters; ++o) {
        const int64_t first = o / shape.filters * shape.channels;
        for (int64_t c = 0; c < shape.channels; ++c) {
          ForEachWindow([&](const int64_t(&at)[3], const int64_t(&tap)[3],
                            const int64_t(&window)[3]) {
            visit(image.At(n, first + c, at[0], at[1], at[2]),
                  filter.At(o, c, tap[0], tap[1], tap[2]),
                  result.At(n, o, window[0], window[1], window[2]));
          });
        }
      }
    }
  }

  // Adds a transposed or forward convolution's bias.
  void AddBias(const ReferenceCall& call) const {
    if (conv_.bias < 0) return;
    const bool forward = conv_.computed == ConvResult::kResult;
    const TensorDesc& desc = forward ? conv_.result_desc : conv_.image_desc;
    const Volume out = {call.outputs[0].data, forward ? result_ : image_};
    int64_t sizes[3];
    for (int i = 0; i < 3; ++i) {
      const ConvDim& dim = conv_.shape.volume[i];
      sizes[i] = forward ? dim.result : dim.image;
    }
    for (int64_t n = 0; n < desc.dims[0]; ++n) {
      for (int64_t o = 0; o < desc.dims[1]; ++o) {
        const float b = call.inputs[conv_.bias].data[o];
        for (int64_t z = 0; z < sizes[0]; ++z) {
          for (int64_t y = 0; y < sizes[1]; ++y) {
            for (int64_t x = 0; x < sizes[2]; ++x) out.At(n, o, z, y, x) += b;
          }
        }
      }
    }
  }

 private:
  float* Data(const ReferenceCall& call, ConvResult which, int position) const {
    return conv_.computed == which ? call.outputs[position].data
                                   : call.inputs[position].data;
  }

  // visit(place in the image, tap, window): windows, then their taps.
  template <typename Visit>
  void ForEachWindow(const Visit& visit) const {
    const ConvDim(&dims)[3] = conv_.shape.volume;
    int64_t window[3];
    for (window[0] = 0; window[0] < dims[0].result; ++window[0]) {
      for (window[1] = 0; window[1] < dims[1].result; ++window[1]) {
        for (window[2] = 0; window[2] < dims[2].result; ++window[2]) {
          ForEachTap(window, visit);
        }
      }
    }
  }
  template <typename Visit>
  void ForEachTap(const int64_t (&window)[3], const Visit& visit) const {
    const ConvDim(&dims)[3] = conv_.shape.volume;
    int64_t tap[3], at[3];
    const auto inside = [&](int i) {
      at[i] = dims[i].At(window[i], tap[i]);
      return at[i] >= 0 && at[i] < dims[i].image;
    };
    for (tap[0] = 0; tap[0] < dims[0].filter; ++tap[0]) {
      if (!inside(0)) continue;
      for (tap[1] = 0; tap[1] < dims[1].filter; ++tap[1]) {
        if (!inside(1)) continue;
        for (tap[2] = 0; tap[2] < dims[2].filter; ++tap[2]) {
          if (inside(2)) visit(at, tap, window);
        }
      }
    }
  }

  ConvOp conv_;
  VolumeStrides image_, filter_, result_;
};

// The output is cleared, `visit` adds to it, and so does a bias.
template <typename Visit>
Candidate Sum(Visit visit) {
  return ReferenceCandidate([visit](const BoundOp& op) -> ReferenceBody {
    return [visit, products = Products(op),
            elements = op.outputs()[0].elements()](const ReferenceCall& call) {
      std::fill_n(call.outputs[0].data, elements, 0.0f);
      products.ForEach(call, visit);
      products.AddBias(call);
    };
  });
}

}  // namespace

void RegisterCpuConvReference(KernelRegistry& registry) {
  const Candidate forward = Sum([](float x, float w, float& y) { y += x * w; });
  const Candidate image = Sum([](float& x, float w, float y) { x += y * w; });
  const Candidate filter = Sum([](float x, float& w, float y) { w += y * x; });
  for (const std::string conv : {"conv1d", "conv2d", "conv3d"}) {
    AddForSchema(registry, conv, forward);
    AddForSchema(registry, conv + "_transpose", image);
    AddForSchema(registry, conv + "_grad_input", image);
    AddForSchema(registry, conv + "_grad_filter", filter);
  }
  AddForSchema(registry, "depthwise_conv2d", forward);
  AddForSchema(registry, "depthwise_conv2d_transpose", image);
}

}  // namespace kernels
}  // namespace halftone

// Depthwise convolutions of row-major images of one to three dims, and their
// gradients: each channel has a filter of its own, so that lines of pixels are
// multiplied by single taps. The lines of a channel are copied with zeros for
// their padding, as f32; of a stride, positions that are one apart from the
// next one of the same tap lie next to each other. Sums are of vectors of 16
// pixels whatever the instruction set, and added in an order that the shape
// alone fixes.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/conv_packed.h"
#include "kernels/cpu/conv_phases.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {
namespace {

constexpr int64_t kLine = 16;  // pixels of a vector, or of two

int64_t RoundUp(int64_t n) { return CeilDiv(n, kLine) * kLine; }

// Floor of a / b, for b > 0.
int64_t FloorDiv(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

// How a line of a source of `size` pixels is copied for the windows of
// `phases`: as `parts` lines of every parts-th pixel, those that no window sees
// left out, as one that is infinite would make a NaN of a sum's zeros.
class PaddedLine {
 public:
  PaddedLine(int64_t size, absl::Span<const Phase> phases)
      : parts_(phases.empty() ? 1 : phases[0].source_step) {
    for (const Phase& phase : phases) {
      if (phase.at.empty()) continue;
      size_ = std::max(size_, std::min(size, phase.SourceEnd()));
    }
    int64_t end = CeilDiv(size_, parts_);
    for (const Phase& phase : phases) {
      for (const int64_t at : phase.at) {
        before_ = std::max(before_, -FloorDiv(at, parts_));
        end = std::max(end, RoundUp(phase.count) + FloorDiv(at, parts_));
      }
    }
    stride_ = before_ + end;
  }

  int64_t floats() const { return parts_ * stride_; }
  // Where what the first window sees at `at` lies.
  int64_t At(int64_t at) const {
    const int64_t i = FloorDiv(at, parts_);
    return (at - i * parts_) * stride_ + before_ + i;
  }

  // `to` is zero where it never was copied to; `line` holds a source's line.
  void Copy(DType dtype, const void* from, int64_t begin, float* line,
            float* to) const {
    if (parts_ == 1 && dtype != DType::kF32) {
      LoadBlock(dtype, from, begin, size_, to + before_);
      return;
    }
    const float* const x = LoadBlock(dtype, from, begin, size_, line);
    if (parts_ == 1) {
      std::copy_n(x, size_, to + before_);
      return;
    }
    for (int64_t part = 0; part < std::min(parts_, size_); ++part) {
      const int64_t n = CeilDiv(size_ - part, parts_);
      float* const y = to + part * stride_ + before_;
      for (int64_t i = 0; i < n; ++i) y[i] = x[i * parts_ + part];
    }
  }

 private:
  int64_t size_ = 0;  // what is copied
  int64_t parts_, before_ = 0, stride_ = 0;
};

// A line of the source, and the taps that see it.
struct SeenLine {
  const float* source;
  const float* taps;
};
struct TapAt {
  int64_t source, filter;  // from a line's begin, and of its taps
};

// Vectors of kBlock * kLine pixels, from the first one on; `bias`: of each
// pixel of a line of kLine.
template <int kBlock, typename Low, bool kFused>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MakeBlock(
    absl::Span<const SeenLine> seen, absl::Span<const TapAt> taps,
    const float* bias, int64_t first, float* to) {
  constexpr int kLanes = Low::kSize, kVectors = kBlock * (kLine / kLanes);
  using Vector = WideVector<kLanes>;
  Vector sums[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = *reinterpret_cast<const Vector*>(bias);
  }
  for (const SeenLine& line : seen) {
    for (const TapAt& tap : taps) {
      const float* const from = line.source + tap.source + first;
      const Vector by = line.taps[tap.filter] * (Vector{} + 1.0f);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        AddFloatProduct<kFused>(
            *reinterpret_cast<const Vector*>(from + v * kLanes), by, &sums[v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    *reinterpret_cast<Vector*>(to + first + v * kLanes) = sums[v];
  }
}

// `count` pixels, rounded up to vectors.
void MakeLine(absl::Span<const SeenLine> seen, absl::Span<const TapAt> taps,
              const float* bias, int64_t count, float* to) {
  ForIsa([=](auto isa) {
    using Low = LowVector<isa()>;
    constexpr bool kFused = isa() != Isa::kBaseline;
    constexpr int kBlock = 4;
    int64_t i = 0;
    for (; i + (kBlock - 1) * kLine < count; i += kBlock * kLine) {
      MakeBlock<kBlock, Low, kFused>(seen, taps, bias, i, to);
    }
    for (; i < count; i += kLine) {
      MakeBlock<1, Low, kFused>(seen, taps, bias, i, to);
    }
  });
}

// What both kinds of kernels know.
struct LineConv {
  explicit LineConv(const BoundOp& op)
      : conv(ConvOp::Of(op)),
        channels(conv.shape.groups),
        depth(conv.shape.volume[0]),
        height(conv.shape.volume[1]),
        width(conv.shape.volume[2]) {}

  int64_t taps() const { return depth.filter * height.filter * width.filter; }

  ConvOp conv;
  int64_t channels;
  ConvDim depth, height, width;
};

// A forward convolution, the gradient of its image, or a transposed one.
class LinesConv : private LineConv {
 public:
  explicit LinesConv(const BoundOp& op)
      : LineConv(op),
        forward_(conv.computed == ConvResult::kResult),
        phases_(PhasesOf(width, forward_)),
        padded_(source(width), phases_),
        dtype_(conv.image_desc.dtype) {
    if (conv.bias >= 0) bias_dtype_ = op.inputs()[conv.bias].dtype;
    for (const Phase& phase : phases_) {
      taps_at_.emplace_back();
      for (size_t t = 0; t < phase.taps.size(); ++t) {
        taps_at_.back().push_back({padded_.At(phase.at[t]), phase.taps[t]});
      }
    }
  }

  int64_t WorkspaceFloats(int threads) const {
    return channels * (taps() + 1) + std::max(1, threads) * ScratchFloats();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    float* const own = static_cast<float*>(buffers.workspace);
    float* const bias = own + channels * taps();
    const float* const filter = LoadBlock(dtype_, buffers.inputs[conv.filter],
                                          0, channels * taps(), own);
    if (conv.bias >= 0) {
      ToFloat(bias_dtype_, buffers.inputs[conv.bias], bias, channels);
    } else {
      std::fill_n(bias, channels, 0.0f);
    }
    const void* const from =
        buffers.inputs[forward_ ? conv.image : conv.result];
    ForTasksWithScratch(stream.threads(), conv.shape.samples * channels, 1,
                        bias + channels, ScratchFloats(),
                        [&](int64_t begin, int64_t end, float* scratch) {
                          std::fill_n(scratch, ImagesFloats(), 0.0f);
                          for (int64_t i = begin; i < end; ++i) {
                            const int64_t c = i % channels;
                            MakeImage(from, i, filter + c * taps(), bias[c],
                                      scratch, buffers.outputs[0]);
                          }
                        });
  }

 private:
  int64_t source(const ConvDim& dim) const {
    return forward_ ? dim.image : dim.result;
  }
  int64_t result(const ConvDim& dim) const {
    return forward_ ? dim.result : dim.image;
  }
  int64_t SourceLines() const { return source(depth) * source(height); }
  int64_t ImagesFloats() const { return SourceLines() * padded_.floats(); }
  int64_t LineFloats() const {
    return std::max(source(width), RoundUp(result(width)));
  }
  // The source's lines, one that is copied or made, and one of the result.
  int64_t ScratchFloats() const {
    return ImagesFloats() + LineFloats() + result(width);
  }
  // Where position `i` of the result sees the source along a dim; -1: nowhere.
  int64_t SeenAt(const ConvDim& dim, int64_t i, int64_t tap) const {
    if (!forward_) return dim.WindowAt(i, tap);
    const int64_t at = dim.At(i, tap);
    return at < dim.image ? at : -1;
  }

  void MakeImage(const void* from, int64_t image, const float* filter,
                 float bias, float* scratch, void* to) const {
    float* const line = scratch + ImagesFloats();
    float* const out = line + LineFloats();
    for (int64_t l = 0; l < SourceLines(); ++l) {
      padded_.Copy(dtype_, from, (image * SourceLines() + l) * source(width),
                   line, scratch + l * padded_.floats());
    }
    float biases[kLine];
    std::fill_n(biases, kLine, bias);
    absl::InlinedVector<SeenLine, 16> seen;
    const int64_t lines = result(depth) * result(height);
    for (int64_t l = 0; l < lines; ++l) {
      seen.clear();
      for (int64_t z = 0; z < depth.filter; ++z) {
        const int64_t at_z = SeenAt(depth, l / result(height), z);
        for (int64_t y = 0; at_z >= 0 && y < height.filter; ++y) {
          const int64_t at_y = SeenAt(height, l % result(height), y);
          if (at_y < 0) continue;
          seen.push_back(
              {scratch + (at_z * source(height) + at_y) * padded_.floats(),
               filter + (z * height.filter + y) * width.filter});
        }
      }
      const int64_t begin = (image * lines + l) * result(width);
      float* const made = OutputBlock(dtype_, to, begin, out);
      for (size_t p = 0; p < phases_.size(); ++p) {
        const Phase& phase = phases_[p];
        MakeLine(seen, taps_at_[p], biases, phase.count, line);
        for (int64_t i = 0; i < phase.count; ++i) {
          made[phase.first + i * phase.step] = line[i];
        }
      }
      StoreBlock(dtype_, made, to, begin, result(width));
    }
  }

  bool forward_;
  std::vector<Phase> phases_;  // along a line of the result
  PaddedLine padded_;
  std::vector<std::vector<TapAt>> taps_at_;  // of each phase
  DType dtype_, bias_dtype_ = DType::kF32;
};

// Lines of both sides that meet.
struct LinePair {
  const float* image;
  const float* grad;
};

// sums[t] += the products of kTaps taps, of all pairs of lines.
template <int kTaps>
void AddTaps(absl::Span<const LinePair> pairs, const int64_t* at, int64_t count,
             float* sums) {
  ForIsa([=](auto isa) {
    constexpr int kLanes = LowVector<isa()>::kSize, kEach = kLine / kLanes;
    constexpr bool kFused = isa() != Isa::kBaseline;
    using Vector = WideVector<kLanes>;
    Vector held[kTaps][kEach] = {};
    for (const LinePair& pair : pairs) {
      for (int64_t i = 0; i < count; i += kLine) {
#pragma GCC unroll 4
        for (int v = 0; v < kEach; ++v) {
          const Vector by =
              *reinterpret_cast<const Vector*>(pair.grad + i + v * kLanes);
#pragma GCC unroll 8
          for (int t = 0; t < kTaps; ++t) {
            AddFloatProduct<kFused>(*reinterpret_cast<const Vector*>(
                                        pair.image + at[t] + i + v * kLanes),
                                    by, &held[t][v]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      float lanes[kLine];
#pragma GCC unroll 4
      for (int v = 0; v < kEach; ++v) {
        *reinterpret_cast<Vector*>(lanes + v * kLanes) = held[t][v];
      }
      for (int64_t n = kLine / 2; n > 0; n /= 2) {
        for (int64_t i = 0; i < n; ++i) lanes[i] += lanes[i + n];
      }
      sums[t] += lanes[0];
    }
  });
}

class LinesGradFilter : private LineConv {
 public:
  explicit LinesGradFilter(const BoundOp& op)
      : LineConv(op),
        phases_(PhasesOf(width, true)),
        padded_(width.image, phases_) {
    for (const int64_t at : phases_[0].at) at_.push_back(padded_.At(at));
  }

  int64_t WorkspaceFloats(int threads) const {
    return std::max(1, threads) * ScratchFloats();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForTasksWithScratch(stream.threads(), channels, 1, buffers.workspace,
                        ScratchFloats(),
                        [&](int64_t begin, int64_t end, float* scratch) {
                          std::fill_n(scratch, PaddedFloats(), 0.0f);
                          for (int64_t c = begin; c < end; ++c) {
                            MakeFilter(buffers, c, scratch);
                          }
                        });
  }

 private:
  static constexpr int kMostTaps = 4;  // whose sums are held at once

  int64_t ImageLines() const { return depth.image * height.image; }
  int64_t GradLines() const { return depth.result * height.result; }
  int64_t GradFloats() const { return RoundUp(width.result); }
  int64_t PaddedFloats() const {
    return ImageLines() * padded_.floats() + GradLines() * GradFloats();
  }
  int64_t ScratchFloats() const {
    return PaddedFloats() + width.image + taps();
  }

  void MakeFilter(const Buffers& buffers, int64_t c, float* scratch) const {
    float* const grads = scratch + ImageLines() * padded_.floats();
    float* const line = grads + GradLines() * GradFloats();
    float* const sums = line + width.image;
    std::fill_n(sums, taps(), 0.0f);
    for (int64_t s = 0; s < conv.shape.samples; ++s) {
      const int64_t image = s * channels + c;
      for (int64_t l = 0; l < ImageLines(); ++l) {
        padded_.Copy(conv.image_desc.dtype, buffers.inputs[conv.image],
                     (image * ImageLines() + l) * width.image, line,
                     scratch + l * padded_.floats());
      }
      for (int64_t l = 0; l < GradLines(); ++l) {
        float* const to = grads + l * GradFloats();
        const int64_t begin = (image * GradLines() + l) * width.result;
        const float* const grad =
            LoadBlock(conv.result_desc.dtype, buffers.inputs[conv.result],
                      begin, width.result, to);
        if (grad != to) std::copy_n(grad, width.result, to);
      }
      AddImage(scratch, grads, sums);
    }
    const DType made = conv.filter_desc.dtype;
    FromFloat(
        made, sums,
        static_cast<char*>(buffers.outputs[0]) + c * taps() * SizeOf(made),
        taps());
  }

  void AddImage(const float* images, const float* grads, float* sums) const {
    absl::InlinedVector<LinePair, 64> pairs;
    for (int64_t k = 0; k < depth.filter * height.filter; ++k) {
      pairs.clear();
      for (int64_t l = 0; l < GradLines(); ++l) {
        const int64_t z = depth.At(l / height.result, k / height.filter);
        const int64_t y = height.At(l % height.result, k % height.filter);
        if (z < 0 || z >= depth.image || y < 0 || y >= height.image) continue;
        pairs.push_back({images + (z * height.image + y) * padded_.floats(),
                         grads + l * GradFloats()});
      }
      int64_t t = 0;
      for (; t + kMostTaps <= width.filter; t += kMostTaps) {
        AddTaps<kMostTaps>(pairs, &at_[t], width.result,
                           sums + k * width.filter + t);
      }
      for (; t < width.filter; ++t) {
        AddTaps<1>(pairs, &at_[t], width.result, sums + k * width.filter + t);
      }
    }
  }

  std::vector<Phase> phases_;  // one, forward
  PaddedLine padded_;
  std::vector<int64_t> at_;  // of the taps of a line
};

bool IsTaken(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  constexpr int64_t kMostStride = 32;
  for (const ConvDim& dim : conv.shape.volume) {
    if (dim.stride > kMostStride) return false;
  }
  return IsDepthwise(conv) && conv.image_desc.layout == Layout::kRowMajor &&
         conv.result_desc.layout == Layout::kRowMajor;
}

template <typename Kernel>
Candidate LinesCandidate() {
  Candidate candidate =
      MakeCandidate("lines", [](const BoundOp& op) { return Kernel(op); });
  candidate.supports = IsTaken;
  candidate.workspace_bytes = [](const BoundOp& op) {
    return Kernel(op).WorkspaceFloats(op.context().threads) *
           static_cast<int64_t>(sizeof(float));
  };
  return candidate;
}

// Of images of two dims: whether the library takes several times as long.
bool IsSlowElsewhere(const ConvOp& conv) {
  const auto& dims = conv.shape.volume;
  return conv.computed == ConvResult::kFilter
             ? !HasDepthwiseGradFilter(conv)
             : std::any_of(std::begin(dims), std::end(dims),
                           [](const ConvDim& dim) { return dim.dilation > 1; });
}

}  // namespace

void RegisterCpuConvLines(KernelRegistry& registry, bool before_onednn) {
  const Candidate conv = LinesCandidate<LinesConv>();
  const Candidate grad_filter = LinesCandidate<LinesGradFilter>();
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (const DType t : dtypes) {
    const auto add = [&](const std::string& op, const Candidate& candidate) {
      registry.Add(op, {t}, Layout::kRowMajor, candidate);
    };
    const auto add_grad_filter = [&](const std::string& op,
                                     const Candidate& candidate) {
      for (const DType made : dtypes) {
        registry.Add(op, {t, made}, Layout::kRowMajor, candidate);
      }
    };
    const auto here = [before_onednn](const ConvOp& op) {
      return IsSlowElsewhere(op) == before_onednn;
    };
    add("conv2d_grad_input", OnlyWhere(conv, here));
    add_grad_filter("conv2d_grad_filter", OnlyWhere(grad_filter, here));
    // The library knows images of two dims alone, and their forward passes.
    if (before_onednn) {
      for (const std::string op : {"conv1d", "conv3d"}) {
        for (const char* kind : {"", "_transpose", "_grad_input"}) {
          add(op + kind, conv);
        }
        add_grad_filter(op + "_grad_filter", grad_filter);
      }
    } else {
      for (const char* op : {"conv2d", "conv2d_transpose", "depthwise_conv2d",
                             "depthwise_conv2d_transpose"}) {
        add(op, conv);
      }
    }
  }
}

}  // namespace kernels
}  // namespace halftone

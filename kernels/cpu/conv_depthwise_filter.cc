// The gradient of depthwise filters for channels-last images, where each
// channel has a filter of its own: for each tap, the sum over all pixels of
// OutputGrad times what the tap sees of Input, a vector of channels at a time.
// The sums of a line of taps stay in registers while lines of pixels go by.
// Samples are cut into parts by the shape alone, and the sums of the parts are
// added in order.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/pool_shape.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/conv_packed.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {
namespace {

// Vectors of channels that a task takes at a time: so few that some lines of
// them stay in the caches.
constexpr int64_t kBlockVectors = 4;

// Floats of a vector of the machine's.
int64_t Lanes() { return HostIsa() == Isa::kAvx512 ? 16 : 8; }

int64_t BlocksOf(int64_t channels) {
  return CeilDiv(CeilDiv(channels, Lanes()), kBlockVectors);
}

// Channels: whole vectors but for the last one, and one whole at least.
Range BlockOf(int64_t channels, int64_t block) {
  const int64_t vectors = CeilDiv(channels, Lanes());
  const int64_t blocks = BlocksOf(channels);
  return {vectors * block / blocks * Lanes(),
          std::min(channels, vectors * (block + 1) / blocks * Lanes())};
}

// The most that a block has.
int64_t BlockFloats() { return kBlockVectors * Lanes(); }

// Lines first, first + 1 ... of some channels of an image, as f32.
struct FloatLines {
  const float* data;
  int64_t first;
  int64_t line, pixel;  // floats from one to the next

  const float* At(int64_t i) const { return data + (i - first) * line; }
};

// Lines [begin, end) of one sample, where they lie if they are f32, else
// converted to `buffer`, which holds (end - begin) * pixels * range.size().
template <typename T>
FloatLines LinesOf(const T* sample, int64_t pixels, int64_t channels,
                   int64_t begin, int64_t end, const Range& range,
                   float* buffer) {
  const T* const from = sample + begin * pixels * channels + range.begin;
  if constexpr (std::is_same<T, float>::value) {
    return {from, begin, pixels * channels, channels};
  } else {
    const int64_t n = range.size(), all = (end - begin) * pixels;
    ForIsa([=](auto isa) {
      using Low = LowVector<isa()>;
      for (int64_t p = 0; p < all; ++p) {
        const T* const x = from + p * channels;
        float* const y = buffer + p * n;
        int64_t c = 0;
        for (; c + Low::kSize <= n; c += Low::kSize) Low::Load(x + c, y + c);
        if (c < n) Low::Load(x + n - Low::kSize, y + n - Low::kSize);
      }
    });
    return {buffer, begin, pixels * n, n};
  }
}

// Lines [begin, end) of OutputGrad, and taps of one line of the filter that
// follow each other.
struct TapsTask {
  FloatLines image, grad;
  const ConvDim *height, *width;
  int64_t begin, end;
  int64_t line_tap, first_tap, taps;

  // Pixels along a line of OutputGrad whose tap at `at` of the image's first
  // one lies in the image.
  Range Inside(int64_t at) const {
    const int64_t stride = width->stride, last = width->image - 1 - at;
    const int64_t begin =
        std::clamp<int64_t>((stride - 1 - at) / stride, 0, width->result);
    return {begin, std::clamp<int64_t>(last < 0 ? 0 : last / stride + 1, begin,
                                       width->result)};
  }
  // Those of all taps.
  Range Inside() const {
    const int64_t first = width->At(0, first_tap);
    const Range from_first = Inside(first);
    const Range from_last = Inside(first + (taps - 1) * width->dilation);
    const int64_t begin = std::max(from_first.begin, from_last.begin);
    return {begin, std::max(begin, std::min(from_first.end, from_last.end))};
  }
};

// Adds to `sums` of kTaps taps, `stride` floats apart, those of kVectors
// vectors of channels, of the pixels all of whose taps are in the image.
template <int kTaps, int kVectors>
void AddInside(const TapsTask& task, int64_t channel, float* sums,
               int64_t stride) {
  ForIsa([&task, channel, sums, stride](auto isa) {
    constexpr int kLanes = LowVector<isa()>::kSize;
    constexpr bool kFused = isa() != Isa::kBaseline;
    using Vector = WideVector<kLanes>;
    const int64_t tap_step = task.width->dilation * task.image.pixel;
    const int64_t step = task.width->stride * task.image.pixel;
    const int64_t grad_step = task.grad.pixel;
    const Range inside = task.Inside();
    Vector held[kTaps][kVectors];
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        held[t][v] =
            *reinterpret_cast<const Vector*>(sums + t * stride + v * kLanes);
      }
    }
    for (int64_t line = task.begin; line < task.end; ++line) {
      const int64_t y = task.height->At(line, task.line_tap);
      if (y < 0 || y >= task.height->image) continue;
      const float* from = task.image.At(y) + channel + inside.begin * step +
                          task.width->At(0, task.first_tap) * task.image.pixel;
      const float* by = task.grad.At(line) + channel + inside.begin * grad_step;
      for (int64_t x = inside.begin; x < inside.end; ++x) {
#pragma GCC unroll 8
        for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) {
            AddFloatProduct<kFused>(
                *reinterpret_cast<const Vector*>(from + t * tap_step +
                                                 v * kLanes),
                *reinterpret_cast<const Vector*>(by + v * kLanes), &held[t][v]);
          }
        }
        from += step;
        by += grad_step;
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        *reinterpret_cast<Vector*>(sums + t * stride + v * kLanes) = held[t][v];
      }
    }
  });
}

// Adds to the sums of one tap those of the pixels [begin, end) of each line,
// whose tap is in the image.
template <int kVectors>
void AddColumns(const TapsTask& task, int64_t tap, const Range& columns,
                int64_t channel, float* sums) {
  ForIsa([&task, tap, columns, channel, sums](auto isa) {
    constexpr int kLanes = LowVector<isa()>::kSize;
    constexpr bool kFused = isa() != Isa::kBaseline;
    using Vector = WideVector<kLanes>;
    const int64_t step = task.width->stride * task.image.pixel;
    const int64_t grad_step = task.grad.pixel;
    Vector held[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      held[v] = *reinterpret_cast<const Vector*>(sums + v * kLanes);
    }
    for (int64_t line = task.begin; line < task.end; ++line) {
      const int64_t y = task.height->At(line, task.line_tap);
      if (y < 0 || y >= task.height->image) continue;
      const float* from = task.image.At(y) + channel + columns.begin * step +
                          task.width->At(0, tap) * task.image.pixel;
      const float* by =
          task.grad.At(line) + channel + columns.begin * grad_step;
      for (int64_t x = columns.begin; x < columns.end; ++x) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          AddFloatProduct<kFused>(
              *reinterpret_cast<const Vector*>(from + v * kLanes),
              *reinterpret_cast<const Vector*>(by + v * kLanes), &held[v]);
        }
        from += step;
        by += grad_step;
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Vector*>(sums + v * kLanes) = held[v];
    }
  });
}

using AddInsideFn = void (*)(const TapsTask&, int64_t, float*, int64_t);

constexpr int kMostHeld = 7;  // taps of a line whose sums are held at once

template <int kVectors, size_t... kTaps>
AddInsideFn AddInsideOf(int taps, std::index_sequence<kTaps...>) {
  static constexpr AddInsideFn kAll[] = {AddInside<kTaps + 1, kVectors>...};
  return kAll[taps - 1];
}
template <int kVectors>
AddInsideFn AddInsideOf(int64_t taps) {
  return AddInsideOf<kVectors>(static_cast<int>(taps),
                               std::make_index_sequence<kMostHeld>());
}

class DepthwiseGradFilter {
 public:
  explicit DepthwiseGradFilter(const BoundOp& op)
      : conv_(ConvOp::Of(op)),
        height_(conv_.shape.volume[1]),
        width_(conv_.shape.volume[2]),
        channels_(conv_.shape.groups),
        taps_(height_.filter * width_.filter) {
    const int64_t samples = conv_.shape.samples;
    parts_ = std::clamp<int64_t>(
        samples * height_.result * width_.result / kLeastPixels, 1,
        std::min(samples, kMostParts));
    const int64_t line =
        (width_.result + height_.stride * width_.image) * BlockFloats();
    lines_ = std::clamp<int64_t>(kChunkFloats / line, 1, height_.result);
  }

  int64_t WorkspaceFloats(int threads) const {
    return (parts_ + 1) * PartFloats() + std::max(1, threads) * ScratchFloats();
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    switch (conv_.image_desc.dtype) {
      case DType::kF16:
        return Run<half>(buffers, stream.threads());
      case DType::kBF16:
        return Run<bfloat16>(buffers, stream.threads());
      default:
        return Run<float>(buffers, stream.threads());
    }
  }

 private:
  static constexpr int64_t kLeastPixels = 512, kMostParts = 32;
  static constexpr int64_t kChunkFloats = 1 << 15;

  int64_t PartFloats() const { return channels_ * taps_; }
  // Of a block's sums, where a vector that is not whole has one of its own.
  int64_t SumsStride() const { return BlockFloats(); }
  int64_t SumsFloats() const { return taps_ * SumsStride(); }
  // Lines of Input that `lines` of OutputGrad see.
  int64_t SeenLines(int64_t lines) const {
    return std::min(height_.image, (lines - 1) * height_.stride +
                                       (height_.filter - 1) * height_.dilation +
                                       1);
  }
  int64_t ImageFloats() const {
    return SeenLines(lines_) * width_.image * BlockFloats();
  }
  int64_t ScratchFloats() const {
    if (conv_.image_desc.dtype == DType::kF32) return SumsFloats();
    return SumsFloats() + ImageFloats() +
           lines_ * width_.result * BlockFloats();
  }

  template <typename T>
  void Run(const Buffers& buffers, int threads) const {
    float* const sums = static_cast<float*>(buffers.workspace);
    const T* const image = static_cast<const T*>(buffers.inputs[conv_.image]);
    const T* const grad = static_cast<const T*>(buffers.inputs[conv_.result]);
    float* const own = sums + parts_ * PartFloats();
    const int64_t blocks = BlocksOf(channels_);
    ForTasksWithScratch(
        threads, parts_ * blocks, 1, own + PartFloats(), ScratchFloats(),
        [&](int64_t begin, int64_t end, float* scratch) {
          for (int64_t i = begin; i < end; ++i) {
            RunPart(image, grad, i / blocks, BlockOf(channels_, i % blocks),
                    sums + i / blocks * PartFloats(), scratch);
          }
        });
    Store(sums, own, threads, buffers.outputs[0]);
  }

  // The sums of a part's samples for some channels: `to` has those of all, a
  // tap's one after the other.
  template <typename T>
  void RunPart(const T* image, const T* grad, int64_t part, const Range& range,
               float* to, float* scratch) const {
    const int64_t image_size = height_.image * width_.image * channels_;
    const int64_t grad_size = height_.result * width_.result * channels_;
    float* const image_buffer = scratch + SumsFloats();
    float* const grad_buffer = image_buffer + ImageFloats();
    std::fill_n(scratch, SumsFloats(), 0.0f);
    const int64_t samples = conv_.shape.samples;
    for (int64_t s = samples * part / parts_; s < samples * (part + 1) / parts_;
         ++s) {
      for (int64_t begin = 0; begin < height_.result; begin += lines_) {
        const int64_t end = std::min(height_.result, begin + lines_);
        const int64_t last = height_.At(end - 1, height_.filter - 1) + 1;
        const int64_t seen_end = std::clamp<int64_t>(last, 0, height_.image);
        const int64_t seen_begin =
            std::clamp<int64_t>(height_.At(begin, 0), 0, seen_end);
        AddLines({LinesOf(image + s * image_size, width_.image, channels_,
                          seen_begin, seen_end, range, image_buffer),
                  LinesOf(grad + s * grad_size, width_.result, channels_, begin,
                          end, range, grad_buffer),
                  &height_, &width_, begin, end, 0, 0, 0},
                 range.size(), scratch);
      }
    }
    const int64_t lanes = Lanes();
    for (int64_t t = 0; t < taps_; ++t) {
      for (int64_t c = 0; c < range.size(); c += lanes) {
        std::copy_n(scratch + t * SumsStride() + c, lanes,
                    to + t * channels_ + range.begin +
                        std::min(c, range.size() - lanes));
      }
    }
  }

  void AddLines(TapsTask task, int64_t n, float* sums) const {
    const int64_t held = Lanes() == 16 ? kMostHeld : 5;
    const int64_t groups = CeilDiv(width_.filter, held);
    for (int64_t y = 0; y < height_.filter; ++y) {
      task.line_tap = y;
      for (int64_t g = 0; g < groups; ++g) {
        task.first_tap = width_.filter * g / groups;
        task.taps = width_.filter * (g + 1) / groups - task.first_tap;
        float* const of =
            sums + (y * width_.filter + task.first_tap) * SumsStride();
        const Range inside = task.Inside();
        if (inside.size() > 0) {
          ForVectors<2>(n, [&](auto vectors, int64_t c, int64_t at) {
            AddInsideOf<vectors()>(task.taps)(task, c, of + at, SumsStride());
          });
        }
        for (int64_t t = 0; t < task.taps; ++t) {
          const int64_t tap = task.first_tap + t;
          const Range all = task.Inside(width_.At(0, tap));
          for (const Range& columns :
               {Range{all.begin, std::min(all.end, inside.begin)},
                Range{std::max(all.begin, inside.end), all.end}}) {
            if (columns.end <= columns.begin) continue;
            ForVectors<4>(n, [&](auto vectors, int64_t c, int64_t at) {
              AddColumns<vectors()>(task, tap, columns, c,
                                    of + t * SumsStride() + at);
            });
          }
        }
      }
    }
  }

  // Calls body(vectors, channel, place of their sums) for up to kMost vectors
  // of n channels at a time; the last one begins earlier where it is not whole,
  // and has sums of its own.
  template <int kMost, typename Body>
  void ForVectors(int64_t n, const Body& body) const {
    const int64_t lanes = Lanes();
    int64_t c = 0;
    if constexpr (kMost == 4) {
      for (; n - c >= 4 * lanes; c += 4 * lanes) {
        body(std::integral_constant<int, 4>(), c, c);
      }
    }
    for (; n - c >= 2 * lanes; c += 2 * lanes) {
      body(std::integral_constant<int, 2>(), c, c);
    }
    for (; c < n; c += lanes) {
      body(std::integral_constant<int, 1>(), std::min(c, n - lanes), c);
    }
  }

  // The sums of the parts, in order; those of the first become the result's,
  // which has the taps of a channel one after the other.
  void Store(float* sums, float* own, int threads, void* to) const {
    const DType dtype = conv_.filter_desc.dtype;
    ParallelFor(threads, BlocksOf(channels_), 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const Range range = BlockOf(channels_, i);
                    const int64_t at = range.begin * taps_, n = range.size();
                    float* const all = sums + range.begin;
                    float* const out = OutputBlock(dtype, to, at, own + at);
                    ForIsa([=] {
                      for (int64_t p = 1; p < parts_; ++p) {
                        for (int64_t t = 0; t < taps_; ++t) {
                          float* const sum = all + t * channels_;
                          const float* const next = sum + p * PartFloats();
#pragma GCC ivdep
                          for (int64_t c = 0; c < n; ++c) sum[c] += next[c];
                        }
                      }
                      TransposeMatrix(all, channels_, taps_, n, out, taps_);
                    });
                    StoreBlock(dtype, out, to, at, n * taps_);
                  }
                });
  }

  ConvOp conv_;
  ConvDim height_, width_;
  int64_t channels_, taps_;
  int64_t parts_ = 1;  // of the samples
  int64_t lines_ = 1;  // of OutputGrad that go by at a time
};

bool IsTaken(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  return IsDepthwise(conv) && conv.shape.groups >= Lanes() &&
         conv.image_desc.layout == Layout::kChannelsLast &&
         conv.result_desc.layout == Layout::kChannelsLast;
}

}  // namespace

void RegisterCpuConvDepthwise(KernelRegistry& registry, bool before_onednn) {
  Candidate candidate = MakeCandidate(
      "depthwise", [](const BoundOp& op) { return DepthwiseGradFilter(op); });
  candidate.supports = IsTaken;
  candidate.workspace_bytes = [](const BoundOp& op) {
    return DepthwiseGradFilter(op).WorkspaceFloats(op.context().threads) *
           static_cast<int64_t>(sizeof(float));
  };
  candidate = OnlyWhere(candidate, [before_onednn](const ConvOp& conv) {
    return HasDepthwiseGradFilter(conv) != before_onednn;
  });
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (const DType t : dtypes) {
    for (const DType made : dtypes) {
      registry.Add("conv2d_grad_filter", {t, made}, Layout::kChannelsLast,
                   candidate);
    }
  }
}

}  // namespace kernels
}  // namespace halftone

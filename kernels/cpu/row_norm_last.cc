// group_norm, instance_norm and their gradients where channels are innermost:
// sums of each sample's channels (channels.h) make those of its groups. What is
// summed together the shape alone decides.
#include "kernels/common/dispatch.h"
#include "kernels/cpu/channels.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/row_norm.h"
#include "kernels/functors/norm.h"

namespace halftone {
namespace kernels {
namespace {

Channels OfOneSample(TensorDesc x) {
  x.dims[0] = 1;
  return Channels(x);
}

const float* InOrNull(const Buffers& buffers, int i) {
  return i < 0 ? nullptr : In(buffers, i);
}

// The other operand of Channels::Reduce, of any dtype.
struct Operand {
  static constexpr bool kTakesBlocks = false, kInOrder = false;
  static constexpr bool kFetches = false;
  DType dtype;
  const void* data;

  const float* operator()(int64_t at, int64_t n, float* buffer,
                          const float*) const {
    return LoadBlock(dtype, data, at, n, buffer);
  }
  template <typename Some>
  void At(int64_t at, int64_t, const typename Some::Lanes&,
          typename Some::Lanes& to) const {
    if (dtype == DType::kF32) {
      Some::Load(static_cast<const float*>(data) + at, to);
    } else if (dtype == DType::kF16) {
      Some::Load(static_cast<const half*>(data) + at, to);
    } else {
      Some::Load(static_cast<const bfloat16*>(data) + at, to);
    }
  }
  template <typename T>
  Operand Lanes(const Channels::Tile&, T*) const {
    return *this;
  }
};

// What both directions know.
struct LastNorm {
  RowNormOp norm;
  Channels channels;  // of one sample
  int64_t samples, elements;
  DType x, y_grad, out;

  LastNorm(const BoundOp& op, const RowNormOp& norm, DType y_grad)
      : norm(norm),
        channels(OfOneSample(op.inputs()[0])),
        samples(op.inputs()[0].dims[0]),
        elements(channels.count() * channels.channels()),
        x(op.inputs()[0].dtype),
        y_grad(y_grad),
        out(op.outputs()[0].dtype) {}

  int64_t groups() const { return norm.shape.period; }
  int64_t channels_of_group() const { return norm.shape.channels; }

  // run(sample, threads): whole samples on many threads where all have as many
  // to do, else one after the other.
  template <typename Run>
  void ForSamples(int threads, const Run& run) const {
    if (samples % threads != 0) {
      for (int64_t sample = 0; sample < samples; ++sample) run(sample, threads);
      return;
    }
    ParallelFor(threads, samples, 1, [&](int64_t begin, int64_t end) {
      for (int64_t sample = begin; sample < end; ++sample) run(sample, 1);
    });
  }
  // visit(group, channel) of a sample.
  template <typename Visit>
  void ForChannels(const Visit& visit) const {
    for (int64_t c = 0; c < channels.channels(); ++c) {
      visit(c / channels_of_group(), c);
    }
  }

  const char* Sample(DType dtype, const void* tensor, int64_t sample) const {
    return static_cast<const char*>(tensor) +
           sample * elements * static_cast<int64_t>(SizeOf(dtype));
  }
  char* Sample(DType dtype, void* tensor, int64_t sample) const {
    return static_cast<char*>(tensor) +
           sample * elements * static_cast<int64_t>(SizeOf(dtype));
  }

  // Channels::Map of tensors of one dtype or several. `gradient` may be null.
  template <typename F>
  void Map(const void* from, const void* gradient, void* to, int threads,
           const F& f) const {
    if (x == out && (gradient == nullptr || x == y_grad)) {
      channels.Map(x, from, gradient, to, threads, f);
      return;
    }
    channels.ForTiles(threads, [&](const Channels::Tile& tile) {
      alignas(64) float x_buffer[kConvertBlock], y_buffer[kConvertBlock];
      alignas(64) float out_buffer[kConvertBlock];
      const int64_t n = tile.elements();
      const float* xs = LoadBlock(x, from, tile.at, n, x_buffer);
      const float* ys = gradient == nullptr
                            ? xs
                            : LoadBlock(y_grad, gradient, tile.at, n, y_buffer);
      float* made = OutputBlock(out, to, tile.at, out_buffer);
      channels_internal::MapTile(xs, ys, made, tile.rows, tile.channel,
                                 tile.channels, tile.inner, f);
      StoreBlock(out, made, to, tile.at, n);
    });
  }
};

struct ForwardLast : LastNorm {
  explicit ForwardLast(const BoundOp& op)
      : LastNorm(op, RowNormOp::Forward(op), op.inputs()[0].dtype) {}

  // Of a sample: the partial sums; mean, variance and bias of each channel.
  int64_t SampleFloats() const {
    return channels.workspace_floats() + 3 * channels.channels();
  }
  int64_t WorkspaceFloats() const { return samples * SampleFloats(); }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForSamples(stream.threads(), [&](int64_t sample, int threads) {
      Normalize(buffers, sample, threads);
    });
  }

 private:
  void Normalize(const Buffers& buffers, int64_t sample, int threads) const {
    const int64_t n = channels.channels();
    float* const partial =
        static_cast<float*>(buffers.workspace) + sample * SampleFloats();
    float* const mean = partial + channels.workspace_floats();
    float *const factor = mean + n, *const bias = factor + n;
    const void* from = Sample(x, buffers.inputs[0], sample);
    channels.Moments(x, from, mean, factor, partial, threads);
    JoinChannels(buffers, sample, mean, factor);
    const float* means = Out(buffers, norm.mean) + sample * groups();
    const float* variances = Out(buffers, norm.variance) + sample * groups();
    const float *scale = InOrNull(buffers, norm.scale),
                *shift = InOrNull(buffers, norm.bias);
    ForChannels([&](int64_t group, int64_t c) {
      const float inverse =
          functors::InverseDeviation(variances[group], norm.epsilon);
      mean[c] = means[group];
      factor[c] = scale == nullptr ? inverse : inverse * scale[c];
      bias[c] = shift == nullptr ? 0.0f : shift[c];
    });
    Map(from, nullptr, Sample(out, buffers.outputs[0], sample), threads,
        NormalizeMap{mean, factor, bias});
  }

  // The statistics of groups, from those of their channels.
  void JoinChannels(const Buffers& buffers, int64_t sample, const float* mean,
                    const float* variance) const {
    const double count = static_cast<double>(channels.count());
    for (int64_t group = 0; group < groups(); ++group) {
      functors::Moments all;
      for (int64_t k = 0; k < channels_of_group(); ++k) {
        const int64_t c = group * channels_of_group() + k;
        all.Take(static_cast<double>(mean[c]),
                 static_cast<double>(variance[c]) * count, count);
      }
      const int64_t row = sample * groups() + group;
      Out(buffers, norm.mean)[row] = static_cast<float>(all.mean);
      Out(buffers, norm.variance)[row] =
          all.count == 0 ? 0.0f : static_cast<float>(all.m2 / all.count);
    }
  }
};

struct BackwardLast : LastNorm {
  explicit BackwardLast(const BoundOp& op)
      : LastNorm(op, RowNormOp::Backward(op), op.inputs()[1].dtype) {}

  // Of a sample: the partial sums; the mean, two sums, a, b and c of each
  // channel.
  int64_t SampleFloats() const {
    return channels.workspace_floats() + 6 * channels.channels();
  }
  int64_t WorkspaceFloats() const { return samples * SampleFloats(); }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    ForSamples(stream.threads(), [&](int64_t sample, int threads) {
      Differentiate(buffers, sample, threads);
    });
    AddSamples(buffers, norm.scale_grad, [&](int64_t sample, int64_t c) {
      const int64_t row = sample * groups() + c / channels_of_group();
      return static_cast<double>(Numbers(buffers, sample).weighted[c]) *
             static_cast<double>(Inverse(buffers, row));
    });
    AddSamples(buffers, norm.bias_grad, [&](int64_t sample, int64_t c) {
      return static_cast<double>(Numbers(buffers, sample).plain[c]);
    });
  }

 private:
  // Sums of y_grad * (x - mean) and of y_grad, and what GradApplyMap takes.
  struct OfChannels {
    float *partial, *mean, *weighted, *plain, *a, *b, *c;
  };
  OfChannels Numbers(const Buffers& buffers, int64_t sample) const {
    const int64_t n = channels.channels();
    float* const partial =
        static_cast<float*>(buffers.workspace) + sample * SampleFloats();
    float* const mean = partial + channels.workspace_floats();
    return {partial,      mean,         mean + n,    mean + 2 * n,
            mean + 3 * n, mean + 4 * n, mean + 5 * n};
  }
  float Inverse(const Buffers& buffers, int64_t row) const {
    return functors::InverseDeviation(In(buffers, norm.variance)[row],
                                      norm.epsilon);
  }

  void Differentiate(const Buffers& buffers, int64_t sample,
                     int threads) const {
    const OfChannels numbers = Numbers(buffers, sample);
    const float* means = In(buffers, norm.mean) + sample * groups();
    ForChannels(
        [&](int64_t group, int64_t c) { numbers.mean[c] = means[group]; });
    const void* from = Sample(x, buffers.inputs[0], sample);
    const void* gradient = Sample(y_grad, buffers.inputs[1], sample);
    const Channels::Summed summed[] = {{from, numbers.mean, numbers.partial}};
    channels.Reduce<NormGradSums>(x, summed, Operand{y_grad, gradient},
                                  threads);
    channels.CombineSums(numbers.partial, numbers.weighted, numbers.plain,
                         threads);
    for (int64_t group = 0; group < groups(); ++group) {
      Coefficients(buffers, sample, group, numbers);
    }
    Map(from, gradient, Sample(out, buffers.outputs[0], sample), threads,
        GradApplyMap{numbers.mean, numbers.a, numbers.b, numbers.c});
  }

  void Coefficients(const Buffers& buffers, int64_t sample, int64_t group,
                    const OfChannels& numbers) const {
    const float* scale = InOrNull(buffers, norm.scale);
    const int64_t row = sample * groups() + group;
    const int64_t begin = group * channels_of_group();
    const int64_t end = begin + channels_of_group();
    double weighted = 0, plain = 0;
    for (int64_t c = begin; c < end; ++c) {
      const double s = scale == nullptr ? 1.0 : static_cast<double>(scale[c]);
      weighted += s * static_cast<double>(numbers.weighted[c]);
      plain += s * static_cast<double>(numbers.plain[c]);
    }
    weighted *= static_cast<double>(Inverse(buffers, row));
    const functors::NormGrad grad = functors::NormGradOf(
        1.0f, In(buffers, norm.variance)[row], norm.epsilon,
        static_cast<float>(weighted), static_cast<float>(plain),
        static_cast<float>(norm.shape.length()));
    for (int64_t c = begin; c < end; ++c) {
      numbers.a[c] = scale == nullptr ? grad.a : grad.a * scale[c];
      numbers.b[c] = grad.b;
      numbers.c[c] = grad.c;
    }
  }

  // Over the samples, in their order.
  template <typename Of>
  void AddSamples(const Buffers& buffers, int output, const Of& of) const {
    if (output < 0) return;
    for (int64_t c = 0; c < channels.channels(); ++c) {
      double sum = 0;
      for (int64_t sample = 0; sample < samples; ++sample) {
        sum += of(sample, c);
      }
      Out(buffers, output)[c] = static_cast<float>(sum);
    }
  }
};

template <typename Kernel>
Candidate MakeLast() {
  return OverImages(
      MakeCandidate("channels", [](const BoundOp& op) { return Kernel(op); }),
      [](const BoundOp& op) { return Kernel(op).WorkspaceFloats(); });
}

}  // namespace

void RegisterCpuRowNormLast(KernelRegistry& registry) {
  for (const char* op : {"group_norm", "instance_norm"}) {
    AddForLayout(registry, op, Layout::kChannelsLast, MakeLast<ForwardLast>());
  }
  for (const char* op : {"group_norm_grad", "instance_norm_grad"}) {
    AddForLayout(registry, op, Layout::kChannelsLast, MakeLast<BackwardLast>());
  }
}

}  // namespace kernels
}  // namespace halftone

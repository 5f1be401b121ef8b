// The gradients of layer_norm, rms_norm, group_norm and instance_norm. Those of
// scale and bias are summed over chunks of rows, or over each channel of each
// row, and then in f64; what is summed together the shape alone decides.
#include "kernels/common/dispatch.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/row_norm.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/norm.h"

namespace halftone {
namespace kernels {
namespace {

// What a group's rows have: the statistics, sums over y_grad * scale and y_grad
// * scale * (x - mean), and what these make.
struct GroupState {
  float mean[kConvertBlock], inverse[kConvertBlock];
  double plain[kConvertBlock], weighted[kConvertBlock];
  functors::NormGrad grad[kConvertBlock];
};

struct RowNormGradKernel {
  RowNormOp norm;
  DType x_dtype, y_dtype, out_dtype;

  // ---- Chunks of rows, where each element has a scale of its own.

  static constexpr int64_t kMostChunks = 64;
  static int64_t RowsPerChunk(const RowNormShape& shape) {
    const int64_t fair = (shape.rows + kMostChunks - 1) / kMostChunks;
    const int64_t length = std::max<int64_t>(1, shape.length());
    return std::max(fair, std::max<int64_t>(1, 8 * kConvertBlock / length));
  }
  static int64_t Chunks(const RowNormShape& shape) {
    const int64_t rows = RowsPerChunk(shape);
    return (shape.rows + rows - 1) / rows;
  }
  static int64_t WorkspaceBytes(const RowNormShape& shape) {
    if (shape.by_element()) {
      return 2 * Chunks(shape) * shape.length() * int64_t{sizeof(float)};
    }
    return 2 * shape.rows * shape.channels * int64_t{sizeof(double)};
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    if (norm.shape.by_element()) {
      RunByElement(buffers, stream.threads());
    } else {
      RunByChannel(buffers, stream.threads());
    }
  }

 private:
  struct Readers {
    BlockReader x, y_grad;

    void Expect(int64_t at, int64_t n) const {
      x.Expect(at, n);
      y_grad.Expect(at, n);
    }
  };
  Readers ReadersOf(const Buffers& buffers) const {
    return {BlockReader(x_dtype, buffers.inputs[0]),
            BlockReader(y_dtype, buffers.inputs[1])};
  }
  const float* Scale(const Buffers& buffers) const {
    return norm.scale < 0
               ? nullptr
               : static_cast<const float*>(buffers.inputs[norm.scale]);
  }

  void Begin(const Buffers& buffers, int64_t row, int64_t rows,
             GroupState& state) const {
    const auto* variance =
        static_cast<const float*>(buffers.inputs[norm.variance]) + row;
    for (int64_t r = 0; r < rows; ++r) {
      state.mean[r] =
          norm.centered
              ? static_cast<const float*>(buffers.inputs[norm.mean])[row + r]
              : 0.0f;
      state.inverse[r] = functors::InverseDeviation(variance[r], norm.epsilon);
      state.plain[r] = state.weighted[r] = 0;
    }
  }
  // What the sums make of each row: x's gradient is a * scale * y_grad + b *
  // (x - mean) + c.
  void Finish(const Buffers& buffers, int64_t row, int64_t rows,
              GroupState& state) const {
    const auto* variance =
        static_cast<const float*>(buffers.inputs[norm.variance]) + row;
    for (int64_t r = 0; r < rows; ++r) {
      const double weighted =
          state.weighted[r] * static_cast<double>(state.inverse[r]);
      const double plain = norm.centered ? state.plain[r] : 0.0;
      state.grad[r] = functors::NormGradOf(
          1.0f, variance[r], norm.epsilon, static_cast<float>(weighted),
          static_cast<float>(plain), static_cast<float>(norm.shape.length()));
    }
  }

  StreamedOutput Output(const Buffers& buffers) const {
    return StreamedOutput::Of(buffers, 0, out_dtype,
                              norm.shape.rows * norm.shape.length());
  }

  // ---- By element.

  void RunByElement(const Buffers& buffers, int threads) const {
    const int64_t length = norm.shape.length();
    const int64_t rows_per_chunk = RowsPerChunk(norm.shape);
    const int64_t chunks = Chunks(norm.shape);
    float* partial = static_cast<float*>(buffers.workspace);
    const StreamedOutput output = Output(buffers);
    ParallelFor(threads, chunks, 1, [&](int64_t begin, int64_t end) {
      Readers readers = ReadersOf(buffers);
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        float* sums = partial + 2 * chunk * length;
        std::fill_n(sums, 2 * length, 0.0f);
        const int64_t first = chunk * rows_per_chunk;
        RunRows(buffers, first,
                std::min(first + rows_per_chunk, norm.shape.rows), readers,
                sums, output);
      }
      FinishStores();
    });
    AddChunks(partial, chunks, norm.scale_grad, 0, buffers);
    AddChunks(partial, chunks, norm.bias_grad, 1, buffers);
  }

  void RunRows(const Buffers& buffers, int64_t begin, int64_t end,
               Readers& readers, float* sums,
               const StreamedOutput& output) const {
    const RowTiles tiles = {norm.shape};
    const int64_t length = norm.shape.length();
    const float* scale = Scale(buffers);
    GroupState state;
    alignas(64) float buffer[kConvertBlock];
    for (int64_t row = begin; row < end; row += tiles.group()) {
      const int64_t rows = std::min(tiles.group(), end - row);
      Begin(buffers, row, rows, state);
      readers.x.Hold(row * length, rows * length);
      readers.y_grad.Hold(row * length, rows * length);
      tiles.ForEach([&](int64_t i, int64_t n) {
        const int64_t at = row * length + i;
        AddByElement(readers.x.Block(at, rows * n),
                     readers.y_grad.Block(at, rows * n), rows, n,
                     scale == nullptr ? nullptr : scale + i, &state, sums + i,
                     sums + length + i);
      });
      Finish(buffers, row, rows, state);
      tiles.ForEach([&](int64_t i, int64_t n) {
        const int64_t at = row * length + i;
        readers.Expect(at + rows * length, rows * n);
        output.WritePart(at, rows * n, [&](void* made) {
          float* to = OutputBlock(out_dtype, made, 0, buffer);
          ApplyByElement(readers.x.Block(at, rows * n),
                         readers.y_grad.Block(at, rows * n), rows, n,
                         scale == nullptr ? nullptr : scale + i, state, to);
          StoreBlock(out_dtype, to, made, 0, rows * n);
        });
      });
    }
  }

  static void AddByElement(const float* x, const float* y_grad, int64_t rows,
                           int64_t n, const float* scale, GroupState* state,
                           float* scale_sums, float* bias_sums) {
    ForIsa([=] {
      for (int64_t r = 0; r < rows; ++r) {
        const float *xr = x + r * n, *g = y_grad + r * n;
        const float m = state->mean[r], inverse = state->inverse[r];
        TwoSums sums;
        if (scale == nullptr) {
          sums = SumsOf(
              n, [=](int64_t i) { return g[i]; },
              [=](int64_t i) { return g[i] * (xr[i] - m); });
        } else {
          sums = SumsOf(
              n, [=](int64_t i) { return g[i] * scale[i]; },
              [=](int64_t i) { return g[i] * scale[i] * (xr[i] - m); });
        }
        state->plain[r] += static_cast<double>(sums.first);
        state->weighted[r] += static_cast<double>(sums.second);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          scale_sums[i] += g[i] * ((xr[i] - m) * inverse);
          bias_sums[i] += g[i];
        }
      }
    });
  }

  static void ApplyByElement(const float* x, const float* y_grad, int64_t rows,
                             int64_t n, const float* scale,
                             const GroupState& state, float* to) {
    ForIsa([=, state = &state] {
      for (int64_t r = 0; r < rows; ++r) {
        const float *xr = x + r * n, *g = y_grad + r * n;
        float* out = to + r * n;
        const functors::NormGrad f = state->grad[r];
        const float m = state->mean[r];
        if (scale == nullptr) {
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) {
            out[i] = f.a * g[i] + f.b * (xr[i] - m) + f.c;
          }
          continue;
        }
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          out[i] = f.a * (g[i] * scale[i]) + f.b * (xr[i] - m) + f.c;
        }
      }
    });
  }

  void AddChunks(const float* partial, int64_t chunks, int output, int which,
                 const Buffers& buffers) const {
    if (output < 0) return;
    const int64_t length = norm.shape.length();
    auto* to = static_cast<float*>(buffers.outputs[output]);
    for (int64_t at = 0; at < length; at += kConvertBlock) {
      double sums[kConvertBlock] = {};
      const int64_t n = std::min(kConvertBlock, length - at);
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        const float* from = partial + (2 * chunk + which) * length + at;
        ForIsa([from, n, into = &sums[0]] {
          for (int64_t i = 0; i < n; ++i) {
            into[i] += static_cast<double>(from[i]);
          }
        });
      }
      for (int64_t i = 0; i < n; ++i) to[at + i] = static_cast<float>(sums[i]);
    }
  }

  // ---- By channel.

  void RunByChannel(const Buffers& buffers, int threads) const {
    const RowTiles tiles = {norm.shape};
    double* by_scale = static_cast<double*>(buffers.workspace);
    double* by_bias = by_scale + norm.shape.rows * norm.shape.channels;
    const StreamedOutput output = Output(buffers);
    ParallelFor(threads, norm.shape.rows, tiles.grain(),
                [&](int64_t begin, int64_t end) {
                  Readers readers = ReadersOf(buffers);
                  for (int64_t row = begin; row < end; row += tiles.group()) {
                    RunGroup(buffers, row, std::min(tiles.group(), end - row),
                             readers, by_scale, by_bias, output);
                  }
                  FinishStores();
                });
    AddSamples(by_scale, norm.scale_grad, buffers);
    AddSamples(by_bias, norm.bias_grad, buffers);
  }

  void RunGroup(const Buffers& buffers, int64_t row, int64_t rows,
                Readers& readers, double* by_scale, double* by_bias,
                const StreamedOutput& output) const {
    const RowTiles tiles = {norm.shape};
    const int64_t length = norm.shape.length(), channels = norm.shape.channels;
    const float* scale = Scale(buffers);
    GroupState state;
    Begin(buffers, row, rows, state);
    readers.x.Hold(row * length, rows * length);
    readers.y_grad.Hold(row * length, rows * length);
    by_scale += row * channels;
    by_bias += row * channels;
    std::fill_n(by_scale, rows * channels, 0.0);
    std::fill_n(by_bias, rows * channels, 0.0);
    tiles.ForEach([&](int64_t i, int64_t n) {
      const int64_t at = row * length + i;
      AddByChannel(readers.x.Block(at, rows * n),
                   readers.y_grad.Block(at, rows * n), rows, i, n, state,
                   by_scale, by_bias);
    });
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t affine = norm.shape.AffineOf(row + r);
      for (int64_t c = 0; c < channels; ++c) {
        const double s =
            scale == nullptr ? 1.0 : static_cast<double>(scale[affine + c]);
        state.plain[r] += s * by_bias[r * channels + c];
        state.weighted[r] += s * by_scale[r * channels + c];
        by_scale[r * channels + c] *= static_cast<double>(state.inverse[r]);
      }
    }
    Finish(buffers, row, rows, state);
    alignas(64) float buffer[kConvertBlock];
    tiles.ForEach([&](int64_t i, int64_t n) {
      const int64_t at = row * length + i;
      readers.Expect(at + rows * length, rows * n);
      output.WritePart(at, rows * n, [&](void* made) {
        float* to = OutputBlock(out_dtype, made, 0, buffer);
        ApplyByChannel(readers.x.Block(at, rows * n),
                       readers.y_grad.Block(at, rows * n), row, rows, i, n,
                       scale, state, to);
        StoreBlock(out_dtype, to, made, 0, rows * n);
      });
    });
  }

  void AddByChannel(const float* x, const float* y_grad, int64_t rows,
                    int64_t i, int64_t n, const GroupState& state,
                    double* by_scale, double* by_bias) const {
    ForIsa([=, shape = norm.shape, state = &state] {
      for (int64_t r = 0; r < rows; ++r) {
        const float *xr = x + r * n, *gr = y_grad + r * n;
        const float m = state->mean[r];
        shape.ForChannels(i, n, [&](int64_t c, int64_t begin, int64_t end) {
          const float *xs = xr + begin, *g = gr + begin;
          const TwoSums sums = SumsOf(
              end - begin, [=](int64_t k) { return g[k]; },
              [=](int64_t k) { return g[k] * (xs[k] - m); });
          by_bias[r * shape.channels + c] += static_cast<double>(sums.first);
          by_scale[r * shape.channels + c] += static_cast<double>(sums.second);
        });
      }
    });
  }

  void ApplyByChannel(const float* x, const float* y_grad, int64_t row,
                      int64_t rows, int64_t i, int64_t n, const float* scale,
                      const GroupState& state, float* to) const {
    ForIsa([=, shape = norm.shape, state = &state] {
      for (int64_t r = 0; r < rows; ++r) {
        const float *xr = x + r * n, *g = y_grad + r * n;
        float* out = to + r * n;
        const functors::NormGrad f = state->grad[r];
        const float m = state->mean[r];
        const int64_t affine = shape.AffineOf(row + r);
        shape.ForChannels(i, n, [&](int64_t c, int64_t begin, int64_t end) {
          const float a = scale == nullptr ? f.a : f.a * scale[affine + c];
#pragma GCC ivdep
          for (int64_t k = begin; k < end; ++k) {
            out[k] = a * g[k] + f.b * (xr[k] - m) + f.c;
          }
        });
      }
    });
  }

  // Over the samples, in their order.
  void AddSamples(const double* sums, int output,
                  const Buffers& buffers) const {
    if (output < 0) return;
    const int64_t channels = norm.shape.affine();
    const int64_t samples =
        channels == 0 ? 0 : norm.shape.rows / norm.shape.period;
    auto* to = static_cast<float*>(buffers.outputs[output]);
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t s = 0; s < samples; ++s) sum += sums[s * channels + c];
      to[c] = static_cast<float>(sum);
    }
  }
};

Candidate MakeRowNormGrad() {
  Candidate candidate = MakeCandidate("rows", [](const BoundOp& op) {
    return RowNormGradKernel{RowNormOp::Backward(op), op.inputs()[0].dtype,
                             op.inputs()[1].dtype, op.outputs()[0].dtype};
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return RowNormGradKernel::WorkspaceBytes(RowNormShape::Of(op));
  };
  return candidate;
}

}  // namespace

void RegisterCpuRowNormGrad(KernelRegistry& registry) {
  for (const char* op : {"layer_norm_grad", "rms_norm_grad", "group_norm_grad",
                         "instance_norm_grad"}) {
    AddForLayout(registry, op, Layout::kRowMajor, MakeRowNormGrad());
  }
}

}  // namespace kernels
}  // namespace halftone

// Attention in tiles with a running softmax: Dao et al., "FlashAttention: Fast
// and Memory-Efficient Exact Attention with IO-Awareness", 2022.
#include "kernels/cpu/attention.h"

#include <limits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/math.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Columns of a tile: scores of 64 KiB.
constexpr int64_t kColumns = 256;

// What a thread keeps of one head, and of the tile at hand.
struct Scratch {
  ScratchLayout layout;
  int64_t keys, values, queries, scores, sums, rows, mask;

  Scratch(const AttentionShape& s, DType dtype)
      : keys(layout.Add(Padded(s.columns) * s.width)),
        values(layout.Add(s.columns * Padded(s.value_width))),
        queries(layout.Add(kAttentionRows * s.width)),
        scores(layout.Add(std::max(kAttentionRows * kColumns, s.value_width))),
        sums(layout.Add(kAttentionRows * Padded(s.value_width))),
        rows(layout.Add(std::max(s.width, s.value_width) *
                        (dtype == DType::kF32 ? 0 : s.columns))),
        mask(layout.Add(kColumns)) {}
};

// The running softmax of a block of rows.
struct RunningRows {
  alignas(64) float most[kAttentionRows], sums[kAttentionRows],
      factors[kAttentionRows];
};

class AttentionKernel {
 public:
  explicit AttentionKernel(const BoundOp& op)
      : op_(AttentionOp::Of(op)), scratch_(op_.shape, op_.dtype) {}

  static int64_t WorkspaceBytes(const BoundOp& op) {
    const AttentionOp attention = AttentionOp::Of(op);
    const Scratch scratch(attention.shape, attention.dtype);
    return scratch.layout.floats() * op.context().threads *
           int64_t{sizeof(float)};
  }

  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const AttentionShape& s = op_.shape;
    const int64_t blocks = (s.rows + kAttentionRows - 1) / kAttentionRows;
    ForItems(stream.threads(), s.batch * s.heads * blocks,
             scratch_.layout.floats(), buffers.workspace,
             [&](int64_t begin, int64_t end, float* scratch) {
               int64_t packed = -1;
               for (int64_t item = begin; item < end; ++item) {
                 const int64_t sample = item / blocks / s.heads;
                 const int64_t head = item / blocks % s.heads;
                 const int64_t kv = sample * s.kv_heads + head / s.group();
                 if (kv != packed) Pack(buffers, sample, head, scratch);
                 packed = kv;
                 Block({op_, buffers, sample, head},
                       item % blocks * kAttentionRows, scratch);
               }
             });
  }

 private:
  void Pack(const Buffers& buffers, int64_t sample, int64_t head,
            float* scratch) const {
    const AttentionShape& s = op_.shape;
    const int64_t kv = head / s.group(), n = s.ColumnsOf(s.rows - 1);
    float* rows = scratch + scratch_.rows;
    const Head keys = Head::Of(op_.dtype, buffers.inputs[1], sample, s.columns,
                               kv, s.kv_heads, s.width);
    ToPanelsTransposed(keys.Rows(0, n, rows), n, s.width,
                       scratch + scratch_.keys);
    const Head values = Head::Of(op_.dtype, buffers.inputs[2], sample,
                                 s.columns, kv, s.kv_heads, s.value_width);
    ToPanels(values.Rows(0, n, rows), n, s.value_width,
             scratch + scratch_.values);
  }

  // Rows [first, first + kAttentionRows), or as many as there are.
  void Block(const AttentionHead& at, int64_t first, float* scratch) const {
    const AttentionShape& s = op_.shape;
    const int64_t n = std::min(kAttentionRows, s.rows - first);
    const int64_t columns = s.ColumnsOf(first + n - 1);
    LoadQueries(at, first, n, scratch);
    RunningRows running;
    std::fill_n(running.most, n, -kInfinity);
    std::fill_n(running.sums, n, 0.0f);
    float* scores = scratch + scratch_.scores;
    float* sums = scratch + scratch_.sums;
    const int64_t width = Padded(s.value_width);
    if (columns == 0) std::fill_n(sums, n * width, 0.0f);
    for (int64_t column = 0; column < columns; column += kColumns) {
      const int64_t m = std::min(kColumns, columns - column);
      Multiply(n, PanelsOf(m), s.width, {scratch + scratch_.queries, s.width},
               {scratch + scratch_.keys + column * s.width, s.width * kPanel},
               /*add=*/false, scores, kColumns);
      for (int64_t r = 0; r < n; ++r) {
        at.Mask(first + r, column, m, Padded(m), scratch + scratch_.mask,
                scores + r * kColumns);
      }
      Exponentials(n, Padded(m), scores, &running);
      if (column > 0) Rescale(n, width, running.factors, sums);
      if (op_.drops()) Drop(at, first, n, column, m, scores);
      Multiply(n, width / kPanel, m, {scores, kColumns},
               {scratch + scratch_.values + column * kPanel,
                s.ColumnsOf(s.rows - 1) * kPanel},
               /*add=*/column > 0, sums, width);
    }
    Finish(at, first, n, running, scratch);
  }

  void LoadQueries(const AttentionHead& at, int64_t first, int64_t n,
                   float* scratch) const {
    const AttentionShape& s = op_.shape;
    float* to = scratch + scratch_.queries;
    const Matrix32 from = Head::Of(op_.dtype, at.buffers.inputs[0], at.sample,
                                   s.rows, at.head, s.heads, s.width)
                              .Rows(first, n, to);
    ForIsa([=, width = s.width, scale = s.scale] {
      for (int64_t r = 0; r < n; ++r) {
        const float* row = from.data + r * from.stride;
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) to[r * width + i] = row[i] * scale;
      }
    });
  }

  // exp(scores - the row's maximum so far), and what the sums before are to be
  // multiplied by. A row that has looked at nothing yet has no maximum.
  static void Exponentials(int64_t n, int64_t padded, float* scores,
                           RunningRows* running) {
    ForIsa([=] {
      for (int64_t r = 0; r < n; ++r) {
        float* row = scores + r * kColumns;
        const float before = running->most[r], here = MaxOf(row, padded);
        const float most = here > before ? here : before;
        const float base = most == -kInfinity ? 0.0f : most;
        for (int64_t i = 0; i < padded; ++i) {
          row[i] = functors::ExpUpTo0(row[i] - base);
        }
        const float factor = functors::ExpUpTo0(before - base);
        running->most[r] = most;
        running->factors[r] = factor;
        running->sums[r] = running->sums[r] * factor +
                           SumOf(padded, [=](int64_t i) { return row[i]; });
      }
    });
  }

  static void Rescale(int64_t n, int64_t width, const float* factors,
                      float* sums) {
    ForIsa([=] {
      for (int64_t r = 0; r < n; ++r) {
        const float factor = factors[r];
        for (int64_t i = 0; i < width; ++i) sums[r * width + i] *= factor;
      }
    });
  }

  void Drop(const AttentionHead& at, int64_t first, int64_t n, int64_t column,
            int64_t m, float* weights) const {
    float factors[kColumns];
    for (int64_t r = 0; r < n; ++r) {
      at.DropoutFactors(first + r, column, m, factors);
      float* row = weights + r * kColumns;
      for (int64_t i = 0; i < m; ++i) row[i] *= factors[i];
    }
  }

  void Finish(const AttentionHead& at, int64_t first, int64_t n,
              const RunningRows& running, float* scratch) const {
    const AttentionShape& s = op_.shape;
    const Head out = Head::Of(op_.dtype, at.buffers.outputs[0], at.sample,
                              s.rows, at.head, s.heads, s.value_width);
    const int64_t width = Padded(s.value_width);
    float* log_sum_exp = at.buffers.outputs.size() < 2
                             ? nullptr
                             : static_cast<float*>(at.buffers.outputs[1]) +
                                   s.RowOf(at.sample, at.head, first);
    for (int64_t r = 0; r < n; ++r) {
      const bool none = running.most[r] == -kInfinity && running.sums[r] == 0;
      out.Store(first + r, 1, none ? 0.0f : 1 / running.sums[r],
                {scratch + scratch_.sums + r * width, width},
                scratch + scratch_.scores);
      if (log_sum_exp == nullptr) continue;
      log_sum_exp[r] =
          none ? kInfinity : running.most[r] + functors::Log(running.sums[r]);
    }
  }

  AttentionOp op_;
  Scratch scratch_;
};

}  // namespace

Head Head::Of(DType dtype, const void* tensor, int64_t sample, int64_t length,
              int64_t head, int64_t heads, int64_t width) {
  // Outputs are described as inputs are.
  char* data = static_cast<char*>(const_cast<void*>(tensor));
  return {dtype,
          data + (sample * length * heads + head) * width * SizeOf(dtype),
          heads * width, width};
}

Matrix32 Head::Rows(int64_t first, int64_t n, float* buffer) const {
  const char* from = data + first * stride * SizeOf(dtype);
  if (dtype == DType::kF32) {
    return {reinterpret_cast<const float*>(from), stride};
  }
  for (int64_t r = 0; r < n; ++r) {
    ToFloat(dtype, from + r * stride * SizeOf(dtype), buffer + r * width,
            width);
  }
  return {buffer, width};
}

void Head::Store(int64_t first, int64_t n, float factor, const Matrix32& from,
                 float* buffer) const {
  for (int64_t r = 0; r < n; ++r) {
    const float* row = from.data + r * from.stride;
    char* to = data + (first + r) * stride * SizeOf(dtype);
    float* out = OutputBlock(dtype, to, 0, buffer);
    for (int64_t i = 0; i < width; ++i) out[i] = row[i] * factor;
    StoreBlock(dtype, out, to, 0, width);
  }
}

void AttentionHead::Mask(int64_t row, int64_t first, int64_t n, int64_t padded,
                         float* buffer, float* scores) const {
  const AttentionShape& s = op.shape;
  const int64_t end =
      std::max<int64_t>(0, std::min(n, s.ColumnsOf(row) - first));
  std::fill(scores + end, scores + padded, -kInfinity);
  if (op.mask < 0) return;
  const int64_t stride = s.mask_strides[3];
  const int64_t begin = s.MaskRow(sample, head, row) + first * stride;
  const char* from = static_cast<const char*>(buffers.inputs[op.mask]) +
                     begin * SizeOf(op.mask_dtype);
  ToFloat(op.mask_dtype, from, buffer, stride == 0 ? 1 : end);
  if (stride == 0) std::fill(buffer, buffer + end, buffer[0]);
  if (op.mask_dtype == DType::kBool) {
    for (int64_t i = 0; i < end; ++i) {
      scores[i] = buffer[i] != 0 ? scores[i] : -kInfinity;
    }
  } else {
    for (int64_t i = 0; i < end; ++i) scores[i] += buffer[i];
  }
}

void AttentionHead::DropoutFactors(int64_t row, int64_t first, int64_t n,
                                   float* to) const {
  const auto scalar = [this](int input) {
    return static_cast<uint64_t>(
        *static_cast<const int64_t*>(buffers.inputs[input]));
  };
  // Of the sample's weights [heads, rows, columns].
  const int64_t element = op.shape.RowOf(0, head, row) * op.shape.columns;
  std::fill_n(to, n, 1.0f);
  ApplyDropout(op.dropout, PhiloxKey(scalar(op.seed), op.stream),
               scalar(op.step),
               scalar(op.first_sample) + static_cast<uint64_t>(sample),
               element + first, n, to, to);
}

void RegisterCpuAttention(KernelRegistry& registry) {
  Candidate candidate = MakeCandidate(
      "tiles", [](const BoundOp& op) { return AttentionKernel(op); });
  candidate.workspace_bytes = AttentionKernel::WorkspaceBytes;
  for (const char* op :
       {"scaled_dot_product_attention", "scaled_dot_product_attention_infer"}) {
    AddForSchema(registry, op, candidate, {"TMask"});
  }
  RegisterCpuAttentionGrad(registry);
}

}  // namespace kernels
}  // namespace halftone

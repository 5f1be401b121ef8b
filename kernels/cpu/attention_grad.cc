// The gradient of attention: the weights of a tile are computed again from the
// rows' LogSumExp. Dao, "FlashAttention-2: Faster Attention with Better
// Parallelism and Work Partitioning", 2023.
#include <limits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace kernels {
namespace {

constexpr int64_t kColumns = 128;

// What a thread keeps of the heads that share keys and values, of the tile of
// columns, and of the tile at hand.
struct Scratch {
  ScratchLayout layout;
  int64_t query_grads, deltas;
  int64_t keys, keys_transposed, values_transposed, key_grads, value_grads;
  int64_t queries, query_panels, out_grads, out_grad_panels;
  int64_t weights, score_grads, factors, mask, rows;

  Scratch(const AttentionShape& s, bool drops)
      : query_grads(layout.Add(s.group() * s.rows * Padded(s.width))),
        deltas(layout.Add(s.group() * s.rows)),
        keys(layout.Add(kColumns * Padded(s.width))),
        keys_transposed(layout.Add(kColumns * s.width)),
        values_transposed(layout.Add(kColumns * s.value_width)),
        key_grads(layout.Add(kColumns * Padded(s.width))),
        value_grads(layout.Add(kColumns * Padded(s.value_width))),
        queries(layout.Add(kAttentionRows * s.width)),
        query_panels(layout.Add(kAttentionRows * Padded(s.width))),
        out_grads(layout.Add(kAttentionRows * s.value_width)),
        out_grad_panels(layout.Add(kAttentionRows * Padded(s.value_width))),
        weights(layout.Add(kAttentionRows * kColumns)),
        score_grads(layout.Add(kAttentionRows * kColumns)),
        factors(layout.Add((drops ? kAttentionRows : 1) * kColumns)),
        mask(layout.Add(kColumns)),
        rows(layout.Add(kColumns * std::max(s.width, s.value_width))) {}
};

// Rows and columns of a tile, and how many there are.
struct TileOfScores {
  int64_t row, rows, column, columns;
};

class AttentionGradKernel {
 public:
  explicit AttentionGradKernel(const BoundOp& op)
      : op_(AttentionOp::Of(op)), scratch_(op_.shape, op_.drops()) {}

  static int64_t WorkspaceBytes(const BoundOp& op) {
    const AttentionOp attention = AttentionOp::Of(op);
    const Scratch scratch(attention.shape, attention.drops());
    return scratch.layout.floats() * op.context().threads *
           int64_t{sizeof(float)};
  }

  // Heads that share keys and values are one thread's, so that every sum has
  // one order.
  void operator()(const Buffers& buffers, runtime::Stream& stream) const {
    const AttentionShape& s = op_.shape;
    ForItems(stream.threads(), s.batch * s.kv_heads, scratch_.layout.floats(),
             buffers.workspace,
             [&](int64_t begin, int64_t end, float* scratch) {
               for (int64_t item = begin; item < end; ++item) {
                 Heads(buffers, item / s.kv_heads, item % s.kv_heads, scratch);
               }
             });
  }

 private:
  // Heads of a tensor of Q's and of K's.
  Head Query(const void* tensor, const AttentionHead& at, int64_t width) const {
    return Head::Of(op_.dtype, tensor, at.sample, op_.shape.rows, at.head,
                    op_.shape.heads, width);
  }
  Head Key(const void* tensor, int64_t sample, int64_t kv,
           int64_t width) const {
    return Head::Of(op_.dtype, tensor, sample, op_.shape.columns, kv,
                    op_.shape.kv_heads, width);
  }
  float* QueryGrads(float* scratch, int64_t in_group, int64_t row) const {
    return scratch + scratch_.query_grads +
           (in_group * op_.shape.rows + row) * Padded(op_.shape.width);
  }

  void Heads(const Buffers& buffers, int64_t sample, int64_t kv,
             float* scratch) const {
    const AttentionShape& s = op_.shape;
    const auto head = [&](int64_t i) {
      return AttentionHead{op_, buffers, sample, kv * s.group() + i};
    };
    const int64_t width = Padded(s.width);
    std::fill_n(QueryGrads(scratch, 0, 0), s.group() * s.rows * width, 0.0f);
    for (int64_t i = 0; i < s.group(); ++i) {
      Deltas(head(i), scratch, scratch + scratch_.deltas + i * s.rows);
    }
    for (int64_t column = 0; column < s.columns; column += kColumns) {
      const int64_t n = std::min(kColumns, s.columns - column);
      LoadColumns(buffers, sample, kv, column, n, scratch);
      for (int64_t i = 0; i < s.group(); ++i) {
        // Rows before look at no column of the tile.
        const int64_t first = s.causal ? column : 0;
        for (int64_t row = first; row < s.rows; row += kAttentionRows) {
          const int64_t rows = std::min(kAttentionRows, s.rows - row);
          Tile(head(i), {row, rows, column, n},
               scratch + scratch_.deltas + i * s.rows + row,
               QueryGrads(scratch, i, row), scratch);
        }
      }
      StoreColumns(buffers, sample, kv, column, n, scratch);
    }
    for (int64_t i = 0; i < s.group(); ++i) {
      Query(buffers.outputs[0], head(i), s.width)
          .Store(0, s.rows, s.scale, {QueryGrads(scratch, i, 0), width},
                 scratch + scratch_.rows);
    }
  }

  // Of each row the sum of OutGrad * Out: that of weights and their gradients.
  void Deltas(const AttentionHead& at, float* scratch, float* deltas) const {
    const AttentionShape& s = op_.shape;
    const Head out = Query(at.buffers.inputs[op_.out], at, s.value_width);
    const Head grad = Query(at.buffers.inputs[op_.out_grad], at, s.value_width);
    for (int64_t row = 0; row < s.rows; row += kAttentionRows) {
      const int64_t n = std::min(kAttentionRows, s.rows - row);
      const Matrix32 x = out.Rows(row, n, scratch + scratch_.rows);
      const Matrix32 y = grad.Rows(row, n, scratch + scratch_.out_grads);
      ForIsa([=, width = s.value_width] {
        for (int64_t r = 0; r < n; ++r) {
          const float *a = x.data + r * x.stride, *b = y.data + r * y.stride;
          deltas[row + r] =
              SumOf(width, [=](int64_t i) { return a[i] * b[i]; });
        }
      });
    }
  }

  void LoadColumns(const Buffers& buffers, int64_t sample, int64_t kv,
                   int64_t column, int64_t n, float* scratch) const {
    const AttentionShape& s = op_.shape;
    float* rows = scratch + scratch_.rows;
    const Matrix32 keys =
        Key(buffers.inputs[1], sample, kv, s.width).Rows(column, n, rows);
    ToPanels(keys, n, s.width, scratch + scratch_.keys);
    ToPanelsTransposed(keys, n, s.width, scratch + scratch_.keys_transposed);
    ToPanelsTransposed(
        Key(buffers.inputs[2], sample, kv, s.value_width).Rows(column, n, rows),
        n, s.value_width, scratch + scratch_.values_transposed);
    std::fill_n(scratch + scratch_.key_grads, n * Padded(s.width), 0.0f);
    std::fill_n(scratch + scratch_.value_grads, n * Padded(s.value_width),
                0.0f);
  }

  void StoreColumns(const Buffers& buffers, int64_t sample, int64_t kv,
                    int64_t column, int64_t n, float* scratch) const {
    const AttentionShape& s = op_.shape;
    float* rows = scratch + scratch_.rows;
    Key(buffers.outputs[1], sample, kv, s.width)
        .Store(column, n, 1, {scratch + scratch_.key_grads, Padded(s.width)},
               rows);
    Key(buffers.outputs[2], sample, kv, s.value_width)
        .Store(column, n, 1,
               {scratch + scratch_.value_grads, Padded(s.value_width)}, rows);
  }

  // Adds what one tile of scores gives to all three gradients.
  void Tile(const AttentionHead& at, const TileOfScores& t, const float* deltas,
            float* query_grads, float* scratch) const {
    const AttentionShape& s = op_.shape;
    LoadRows(at, t, scratch);
    const Matrix32 queries = {scratch + scratch_.queries, s.width};
    const Matrix32 out_grads = {scratch + scratch_.out_grads, s.value_width};
    const Matrix32 weights = {scratch + scratch_.weights, kColumns};
    const Matrix32 score_grads = {scratch + scratch_.score_grads, kColumns};
    const auto panels = [scratch](int64_t at_floats, int64_t depth) {
      return Panels{scratch + at_floats, depth * kPanel};
    };
    const int64_t column_panels = PanelsOf(t.columns);
    Multiply(t.rows, column_panels, s.width, queries,
             panels(scratch_.keys_transposed, s.width), false,
             scratch + scratch_.weights, kColumns);
    Multiply(t.rows, column_panels, s.value_width, out_grads,
             panels(scratch_.values_transposed, s.value_width), false,
             scratch + scratch_.score_grads, kColumns);
    Weigh(at, t, deltas, scratch);
    Multiply(t.columns, PanelsOf(s.value_width), t.rows, weights.Transposed(),
             panels(scratch_.out_grad_panels, t.rows), true,
             scratch + scratch_.value_grads, Padded(s.value_width));
    Multiply(t.columns, PanelsOf(s.width), t.rows, score_grads.Transposed(),
             panels(scratch_.query_panels, t.rows), true,
             scratch + scratch_.key_grads, Padded(s.width));
    Multiply(t.rows, PanelsOf(s.width), t.columns, score_grads,
             panels(scratch_.keys, t.columns), true, query_grads,
             Padded(s.width));
  }

  // Queries are scaled; so are then, by them, the gradients of keys.
  void LoadRows(const AttentionHead& at, const TileOfScores& t,
                float* scratch) const {
    const AttentionShape& s = op_.shape;
    float* queries = scratch + scratch_.queries;
    LoadScaled(Query(at.buffers.inputs[0], at, s.width), t, s.scale, queries);
    ToPanels({queries, s.width}, t.rows, s.width,
             scratch + scratch_.query_panels);
    float* grads = scratch + scratch_.out_grads;
    LoadScaled(Query(at.buffers.inputs[op_.out_grad], at, s.value_width), t, 1,
               grads);
    ToPanels({grads, s.value_width}, t.rows, s.value_width,
             scratch + scratch_.out_grad_panels);
  }

  static void LoadScaled(const Head& head, const TileOfScores& t, float scale,
                         float* to) {
    const Matrix32 from = head.Rows(t.row, t.rows, to);
    ForIsa([=, rows = t.rows, width = head.width] {
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = from.data + r * from.stride;
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) to[r * width + i] = row[i] * scale;
      }
    });
  }

  // Of scores the weights that V was multiplied by, and of the gradients of
  // those the gradients of the scores.
  void Weigh(const AttentionHead& at, const TileOfScores& t,
             const float* deltas, float* scratch) const {
    const float* log_sum_exp =
        static_cast<const float*>(at.buffers.inputs[op_.log_sum_exp]) +
        op_.shape.RowOf(at.sample, at.head, t.row);
    float* weights = scratch + scratch_.weights;
    float* grads = scratch + scratch_.score_grads;
    float* factors = scratch + scratch_.factors;
    for (int64_t r = 0; r < t.rows; ++r) {
      at.Mask(t.row + r, t.column, t.columns, Padded(t.columns),
              scratch + scratch_.mask, weights + r * kColumns);
      if (!op_.drops()) continue;
      at.DropoutFactors(t.row + r, t.column, t.columns, factors + r * kColumns);
    }
    if (!op_.drops()) std::fill_n(factors, t.columns, 1.0f);
    ForIsa([=, rows = t.rows, n = t.columns,
            stride = op_.drops() ? kColumns : int64_t{0}] {
      for (int64_t r = 0; r < rows; ++r) {
        float *w = weights + r * kColumns, *g = grads + r * kColumns;
        const float* keep = factors + r * stride;
        const float log = log_sum_exp[r], delta = deltas[r];
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          const float weight = functors::ExpUpTo0(w[i] - log);
          g[i] = weight * (g[i] * keep[i] - delta);
          w[i] = weight * keep[i];
        }
      }
    });
  }

  AttentionOp op_;
  Scratch scratch_;
};

}  // namespace

void RegisterCpuAttentionGrad(KernelRegistry& registry) {
  Candidate candidate = MakeCandidate(
      "tiles", [](const BoundOp& op) { return AttentionGradKernel(op); });
  candidate.workspace_bytes = AttentionGradKernel::WorkspaceBytes;
  AddForSchema(registry, "scaled_dot_product_attention_grad", candidate,
               {"TMask"});
}

}  // namespace kernels
}  // namespace halftone

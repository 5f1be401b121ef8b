// The gradient of attention: the weights of a tile are computed again from the
// rows' LogSumExp, once for the gradient of queries and once for those of keys
// and values, so that every sum has one order. Dao, "FlashAttention-2: Faster
// Attention with Better Parallelism and Work Partitioning", 2023.
#include <algorithm>

#include "kernels/cuda/attention_dropout.h"
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

struct GradData {
  AttentionData data;
  const void *out, *out_grad;
  const float* log_sum_exp;
  float* deltas;  // [batch, heads, rows]

  // Of the products of a query with a key and of a gradient with a value: the
  // weight that V was multiplied by, and the gradient of the product.
  HT_DEVICE void Weigh(float product, float grad, float keep, int64_t sample,
                       int64_t head, int64_t row, int64_t column, float* weight,
                       float* score_grad) const {
    const AttentionShape& s = data.op.shape;
    const float score = data.Score(product, sample, head, row, column);
    *weight = *score_grad = 0;
    if (score == -functors::Infinity()) return;
    const int64_t at = s.RowOf(sample, head, row);
    const float p = functors::Exp(score - log_sum_exp[at]);
    *weight = p * keep;
    *score_grad = p * (grad * keep - deltas[at]) * s.scale;
  }
};

// Of each row the sum of OutGrad * Out: that of weights and their gradients.
// A warp for each row.
__global__ void __launch_bounds__(kAttentionThreads)
    RowDeltas(const __grid_constant__ GradData grad) {
  const AttentionShape& s = grad.data.op.shape;
  const int64_t at =
      static_cast<int64_t>(blockIdx.x) * (kAttentionThreads / kWarp) +
      threadIdx.x / kWarp;
  if (at >= s.batch * s.heads * s.rows) return;
  const int64_t sample = at / (s.heads * s.rows);
  const int64_t head = at / s.rows % s.heads, row = at % s.rows;
  const HeadRows out = grad.data.Query(grad.out, sample, head, s.value_width);
  const HeadRows out_grad =
      grad.data.Query(grad.out_grad, sample, head, s.value_width);
  float sum = 0;
  for (int64_t i = threadIdx.x % kWarp; i < s.value_width; i += kWarp) {
    sum += out.At(row, i) * out_grad.At(row, i);
  }
  sum = CombineWarp(sum, Plus());
  if (threadIdx.x % kWarp == 0) grad.deltas[at] = sum;
}

template <int kSlice>
HT_DEVICE void StoreSlice(const HeadRows& like, void* to,
                          const BlockPlace<kSlice>& place,
                          const SliceSums<kSlice>& sums) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int i = 0; i < kOwn; ++i) {
    for (int part = 0; part < kSlice / kWarp; ++part) {
      like.Set(to, place.first + warp * kOwn + i,
               place.slice + part * kWarp + lane, sums[i][part]);
    }
  }
}

template <int kSlice>
__global__ void __launch_bounds__(kAttentionThreads, kBlocks)
    QueryGradTiles(const __grid_constant__ GradData grad, void* q_grad) {
  HT_SHARED(OwnTile, own_tile);
  HT_SHARED(OtherTile, other_tile);
  HT_SHARED(WeightTile, score_grads);
  HT_SHARED(SliceTile<kSlice>, tile);
  const AttentionData& data = grad.data;
  const AttentionShape& s = data.op.shape;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const BlockPlace<kSlice> place(s.rows, s.width, s.heads);
  const int64_t kv = place.head / s.group();
  const HeadRows q = data.Query(data.q, place.sample, place.head, s.width);
  const HeadRows out_grad =
      data.Query(grad.out_grad, place.sample, place.head, s.value_width);
  const HeadRows k = data.Key(data.k, place.sample, kv, s.width);
  const HeadRows v = data.Key(data.v, place.sample, kv, s.value_width);
  const HeadDropout dropout(data, place.sample, place.head);
  SliceSums<kSlice> sums = {};
  const int64_t columns = s.ColumnsOf(place.first + kTile - 1);
  for (int64_t first = 0; first < columns; first += kTile) {
    float products[kOwn], grads[kOwn], keep[kOwn];
    MultiplyTile(q, place.first, k, first, own_tile, other_tile, products);
    MultiplyTile(out_grad, place.first, v, first, own_tile, other_tile, grads);
    dropout.OfRows(place.first + warp * kOwn, first + lane, keep);
    for (int i = 0; i < kOwn; ++i) {
      const int own = warp * kOwn + i;
      float weight;
      grad.Weigh(products[i], grads[i], keep[i], place.sample, place.head,
                 place.first + own, first + lane, &weight,
                 &score_grads[own][lane]);
    }
    AddTile<kSlice>(score_grads, k, first, place.slice, tile, sums);
  }
  StoreSlice(q, q_grad, place, sums);
}

// Heads are those of K here; each block goes over the heads of Q that share
// one.
template <int kSlice>
__global__ void __launch_bounds__(kAttentionThreads, kBlocks)
    KeyGradTiles(const __grid_constant__ GradData grad, void* k_grad,
                 void* v_grad) {
  HT_SHARED(OwnTile, own_tile);
  HT_SHARED(OtherTile, other_tile);
  HT_SHARED(WeightTile, weights);
  HT_SHARED(WeightTile, score_grads);
  HT_SHARED(SliceTile<kSlice>, tile);
  const AttentionData& data = grad.data;
  const AttentionShape& s = data.op.shape;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t widest = s.width > s.value_width ? s.width : s.value_width;
  const BlockPlace<kSlice> place(s.columns, widest, s.kv_heads);
  const HeadRows k = data.Key(data.k, place.sample, place.head, s.width);
  const HeadRows v = data.Key(data.v, place.sample, place.head, s.value_width);
  SliceSums<kSlice> k_sums = {}, v_sums = {};
  const int64_t group = s.group();
  for (int64_t head = place.head * group; head < (place.head + 1) * group;
       ++head) {
    const HeadRows q = data.Query(data.q, place.sample, head, s.width);
    const HeadRows out_grad =
        data.Query(grad.out_grad, place.sample, head, s.value_width);
    const HeadDropout dropout(data, place.sample, head);
    // Rows before look at no column of the tile.
    for (int64_t first = s.causal ? place.first : 0; first < s.rows;
         first += kTile) {
      float products[kOwn], grads[kOwn], keep[kOwn];
      MultiplyTile(k, place.first, q, first, own_tile, other_tile, products);
      MultiplyTile(v, place.first, out_grad, first, own_tile, other_tile,
                   grads);
      dropout.OfColumns(first + lane, place.first + warp * kOwn, keep);
      for (int i = 0; i < kOwn; ++i) {
        const int own = warp * kOwn + i;
        grad.Weigh(products[i], grads[i], keep[i], place.sample, head,
                   first + lane, place.first + own, &weights[own][lane],
                   &score_grads[own][lane]);
      }
      AddTile<kSlice>(weights, out_grad, first, place.slice, tile, v_sums);
      AddTile<kSlice>(score_grads, q, first, place.slice, tile, k_sums);
    }
  }
  StoreSlice(k, k_grad, place, k_sums);
  StoreSlice(v, v_grad, place, v_sums);
}

struct AttentionGrad {
  AttentionOp op;

  void operator()(const Buffers& b, Launcher& launch) const {
    const AttentionShape& s = op.shape;
    const GradData grad = {AttentionData::Of(op, b), b.inputs[op.out],
                           b.inputs[op.out_grad],
                           static_cast<const float*>(b.inputs[op.log_sum_exp]),
                           static_cast<float*>(b.workspace)};
    launch(RowDeltas,
           CeilDiv(s.batch * s.heads * s.rows, kAttentionThreads / kWarp),
           kAttentionThreads, grad);
    WithSlice(s.width, [&](auto slice) {
      constexpr int kSlice = decltype(slice)::value;
      launch(QueryGradTiles<kSlice>,
             BlockPlace<kSlice>::Blocks(s.rows, s.width, s.heads, s.batch),
             kAttentionThreads, grad, b.outputs[0]);
    });
    const int64_t widest = std::max(s.width, s.value_width);
    WithSlice(widest, [&](auto slice) {
      constexpr int kSlice = decltype(slice)::value;
      launch(KeyGradTiles<kSlice>,
             BlockPlace<kSlice>::Blocks(s.columns, widest, s.kv_heads, s.batch),
             kAttentionThreads, grad, b.outputs[1], b.outputs[2]);
    });
  }
};

}  // namespace

void RegisterCudaAttentionGrad(KernelRegistry& registry) {
  Candidate candidate = CudaCandidate("tiles", [](const BoundOp& op) {
    return AttentionGrad{AttentionOp::Of(op)};
  });
  candidate.workspace_bytes = [](const BoundOp& op) {
    return op.Input("LogSumExp").elements() * int64_t{sizeof(float)};
  };
  AddForSchema(registry, "scaled_dot_product_attention_grad", candidate,
               {"TMask"});
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

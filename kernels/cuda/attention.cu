// Attention in tiles with a running softmax: Dao et al., "FlashAttention: Fast
// and Memory-Efficient Exact Attention with IO-Awareness", 2022.
#include "kernels/cuda/attention_dropout.h"
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// The running softmax of a warp's rows; the same in all its lanes.
struct RunningRows {
  float most[kOwn], sums[kOwn];
};

// Of a tile's products of the warp's rows the weights, without dropout, in
// `products`; rescales what was added up before.
template <int kSlice>
HT_DEVICE void RunSoftmax(const AttentionData& data,
                          const BlockPlace<kSlice>& place, int64_t column,
                          float (&products)[kOwn], RunningRows& running,
                          SliceSums<kSlice>& sums) {
  const int warp = threadIdx.x / kWarp;
  for (int i = 0; i < kOwn; ++i) {
    const float score = data.Score(products[i], place.sample, place.head,
                                   place.first + warp * kOwn + i, column);
    const float most = Most()(running.most[i], CombineWarp(score, Most()));
    const float base = most == -functors::Infinity() ? 0.0f : most;
    const float weight = functors::Exp(score - base);
    const float factor = functors::Exp(running.most[i] - base);
    running.most[i] = most;
    running.sums[i] = running.sums[i] * factor + CombineWarp(weight, Plus());
    for (int part = 0; part < kSlice / kWarp; ++part) sums[i][part] *= factor;
    products[i] = weight;
  }
}

template <int kSlice>
__global__ void __launch_bounds__(kAttentionThreads, kBlocks)
    AttentionTiles(const __grid_constant__ AttentionData data, void* out,
                   float* log_sum_exp) {
  HT_SHARED(OwnTile, own_tile);
  HT_SHARED(OtherTile, other_tile);
  HT_SHARED(WeightTile, weights);
  HT_SHARED(SliceTile<kSlice>, tile);
  const AttentionShape& s = data.op.shape;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const BlockPlace<kSlice> place(s.rows, s.value_width, s.heads);
  const int64_t kv = place.head / s.group();
  const HeadRows q = data.Query(data.q, place.sample, place.head, s.width);
  const HeadRows k = data.Key(data.k, place.sample, kv, s.width);
  const HeadRows v = data.Key(data.v, place.sample, kv, s.value_width);
  const HeadDropout dropout(data, place.sample, place.head);
  RunningRows running;
  SliceSums<kSlice> sums = {};
  for (int i = 0; i < kOwn; ++i) {
    running.most[i] = -functors::Infinity();
    running.sums[i] = 0;
  }
  const int64_t columns = s.ColumnsOf(place.first + kTile - 1);
  for (int64_t first = 0; first < columns; first += kTile) {
    float products[kOwn];
    MultiplyTile(q, place.first, k, first, own_tile, other_tile, products);
    RunSoftmax(data, place, first + lane, products, running, sums);
    float keep[kOwn];
    dropout.OfRows(place.first + warp * kOwn, first + lane, keep);
    for (int i = 0; i < kOwn; ++i) {
      weights[warp * kOwn + i][lane] = products[i] * keep[i];
    }
    AddTile<kSlice>(weights, v, first, place.slice, tile, sums);
  }
  const HeadRows to = data.Query(out, place.sample, place.head, s.value_width);
  for (int i = 0; i < kOwn; ++i) {
    const int64_t row = place.first + warp * kOwn + i;
    const bool none =
        running.most[i] == -functors::Infinity() && running.sums[i] == 0;
    const float inverse = none ? 0.0f : 1.0f / running.sums[i];
    for (int part = 0; part < kSlice / kWarp; ++part) {
      to.Set(out, row, place.slice + part * kWarp + lane,
             sums[i][part] * inverse);
    }
    if (log_sum_exp == nullptr || place.slice != 0 || lane != 0 ||
        row >= s.rows) {
      continue;
    }
    log_sum_exp[s.RowOf(place.sample, place.head, row)] =
        none ? functors::Infinity()
             : running.most[i] + functors::Log(running.sums[i]);
  }
}

auto MakeAttention(const BoundOp& op) {
  return [attention = AttentionOp::Of(op)](const Buffers& b, Launcher& launch) {
    const AttentionShape& s = attention.shape;
    float* const log_sum_exp =
        b.outputs.size() < 2 ? nullptr : static_cast<float*>(b.outputs[1]);
    WithSlice(s.value_width, [&](auto slice) {
      constexpr int kSlice = decltype(slice)::value;
      launch(
          AttentionTiles<kSlice>,
          BlockPlace<kSlice>::Blocks(s.rows, s.value_width, s.heads, s.batch),
          kAttentionThreads, AttentionData::Of(attention, b), b.outputs[0],
          log_sum_exp);
    });
  };
}

}  // namespace

void RegisterCudaAttention(KernelRegistry& registry) {
  for (const char* op :
       {"scaled_dot_product_attention", "scaled_dot_product_attention_infer"}) {
    AddForSchema(registry, op, CudaCandidate("tiles", MakeAttention),
                 {"TMask"});
  }
  RegisterCudaAttentionGrad(registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

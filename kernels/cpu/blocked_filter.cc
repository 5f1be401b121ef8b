#include "kernels/cpu/blocked_filter.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/transpose.h"

namespace halftone {
namespace kernels {
namespace {

using dnnl::memory;

constexpr int64_t kSide = 16;  // of blocks, at least, and groups of columns
// Channels, or pairs of them, that a task packs of a block of filters.
constexpr int64_t kTaskColumns = 64;

// Filters [rows] of columns that are neighbours become columns [made] of
// filters [width], `step` apart: where there are fewer, zeros.
template <typename Word>
void PackBlock(const Word* from, int64_t stride, int64_t rows, int64_t columns,
               int64_t width, int64_t made, Word* to, int64_t step) {
  ForIsa([=] { TransposeMatrix(from, stride, rows, columns, to, step); });
  for (int64_t c = 0; c < made; ++c) {
    std::fill(to + c * step + (c < columns ? rows : 0), to + c * step + width,
              Word{0});
  }
}

// Whether `desc` begins where its memory does, and holds its elements alone.
bool IsBare(const memory::desc& desc) {
  if (desc.data.offset0 != 0 || desc.data.extra.flags != 0) return false;
  return std::all_of(desc.data.padded_offsets,
                     desc.data.padded_offsets + desc.data.ndims,
                     [](dnnl_dim_t offset) { return offset == 0; });
}

}  // namespace

std::optional<BlockedFilter> BlockedFilter::Of(const memory::desc& plain,
                                               const memory::desc& blocked) {
  const auto& data = blocked.data;
  const auto type = plain.data_type();
  const bool bf16 = type == memory::data_type::bf16;
  if (data.format_kind != dnnl_blocked || data.ndims != 4 ||
      blocked.data_type() != type || plain.dims() != blocked.dims() ||
      (!bf16 && type != memory::data_type::f32) || !IsBare(plain) ||
      !IsBare(blocked) ||
      plain != memory::desc(plain.dims(), type, memory::format_tag::acdb)) {
    return std::nullopt;
  }
  constexpr int kFilter = 0, kChannel = 1, kHeight = 2, kWidth = 3;
  const auto& blocking = data.format_desc.blocking;
  const auto has = [&blocking](int at, int dim, int64_t least) {
    return blocking.inner_idxs[at] == dim &&
           (least > 0 ? blocking.inner_blks[at] == least
                      : blocking.inner_blks[at] % kSide == 0);
  };
  BlockedFilter filter;
  filter.bf16_ = bf16;
  int64_t channels_together = 1;
  const int blocks = blocking.inner_nblks;
  if (blocks == 1 && has(0, kFilter, 0)) {
    filter.form_ = Form::kFilters;
    filter.block_ = blocking.inner_blks[0];
  } else if (bf16 && (blocks == 2 || blocks == 3) &&
             has(blocks - 2, kFilter, 0) && has(blocks - 1, kChannel, 2) &&
             (blocks == 2 || has(0, kChannel, kSide))) {
    filter.form_ = Form::kFiltersOfPairs;
    filter.block_ = blocking.inner_blks[blocks - 2];
    channels_together = blocks == 2 ? 2 : 2 * kSide;
  } else if (bf16 && blocks == 3 && blocking.inner_idxs[0] == kFilter &&
             has(1, kChannel, kSide) && has(2, kFilter, 2)) {
    filter.form_ = Form::kPairsOfFilters;
    filter.block_ = 2 * blocking.inner_blks[0];
    channels_together = kSide;
  } else {
    return std::nullopt;
  }
  filter.filters_ = data.dims[kFilter];
  filter.channels_ = data.dims[kChannel];
  filter.made_channels_ = data.padded_dims[kChannel];
  filter.taps_ = data.dims[kHeight] * data.dims[kWidth];
  filter.filter_stride_ = blocking.strides[kFilter];
  filter.tap_stride_ = blocking.strides[kWidth];
  const int64_t stride = blocking.strides[kChannel];
  const bool apart = channels_together <= 2;
  filter.step_ = apart ? stride : 2 * filter.block_;
  filter.group_stride_ = apart ? kSide * stride : stride;
  // Lines of taps follow each other, and no block stands behind the last.
  if (blocking.strides[kHeight] != filter.tap_stride_ * data.dims[kWidth] ||
      data.padded_dims[kFilter] - filter.filters_ >= filter.block_ ||
      filter.made_channels_ - filter.channels_ >= channels_together) {
    return std::nullopt;
  }
  return filter;
}

template <typename Body>
void BlockedFilter::ForColumns(int threads, int64_t columns,
                               const Body& body) const {
  const int64_t parts = (columns + kTaskColumns - 1) / kTaskColumns;
  ParallelFor(threads, blocks() * taps_ * parts, /*grain=*/1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t first = i % parts * kTaskColumns;
                  body(i / parts / taps_, i / parts % taps_, first,
                       std::min(columns, first + kTaskColumns));
                }
              });
}

template <typename Word>
void BlockedFilter::PackWords(const void* plain, void* blocked,
                              int threads) const {
  const int64_t elements = form_ == Form::kFiltersOfPairs ? 2 : 1;
  const int64_t columns = channels_ / elements, stride = taps_ * columns;
  const Word* const from = static_cast<const Word*>(plain);
  Word* const to = static_cast<Word*>(blocked);
  ForColumns(threads, made_channels_ / elements,
             [&](int64_t block, int64_t tap, int64_t first, int64_t end) {
               const int64_t filter = block * block_;
               for (int64_t c = first; c < end; c += kSide) {
                 PackBlock(from + filter * stride + tap * columns + c, stride,
                           std::min(block_, filters_ - filter),
                           std::clamp<int64_t>(columns - c, 0, kSide), block_,
                           std::min(kSide, end - c),
                           to + At(block, tap, c / kSide) / elements,
                           step_ / elements);
               }
             });
}

template <typename Word>
void BlockedFilter::UnpackWords(const void* blocked, void* plain,
                                int threads) const {
  const int64_t stride = taps_ * channels_;
  const Word* const from = static_cast<const Word*>(blocked);
  Word* const to = static_cast<Word*>(plain);
  ForColumns(threads, channels_,
             [&](int64_t block, int64_t tap, int64_t first, int64_t end) {
               const int64_t filter = block * block_;
               const int64_t rows = std::min(block_, filters_ - filter);
               for (int64_t c = first; c < end; c += kSide) {
                 const Word* const x = from + At(block, tap, c / kSide);
                 Word* const y = to + filter * stride + tap * channels_ + c;
                 const int64_t columns = std::min(kSide, end - c);
                 ForIsa([=, step = step_] {
                   TransposeMatrix(x, step, columns, rows, y, stride);
                 });
               }
             });
}

// Pairs of which the last one is of one channel are no words: few filters have
// those, an image's first, and they are small.
void BlockedFilter::PackOddPairs(const void* plain, void* blocked) const {
  const uint16_t* from = static_cast<const uint16_t*>(plain);
  uint16_t* const to = static_cast<uint16_t*>(blocked);
  std::memset(to, 0, blocks() * block_ * taps_ * made_channels_ * sizeof(*to));
  for (int64_t f = 0; f < filters_; ++f) {
    for (int64_t tap = 0; tap < taps_; ++tap) {
      for (int64_t c = 0; c < channels_; ++c) {
        const int64_t pair = c / 2;
        to[At(f / block_, tap, pair / kSide) + pair % kSide * step_ +
           f % block_ * 2 + c % 2] = *from++;
      }
    }
  }
}

void BlockedFilter::PackPairsOfFilters(const void* plain, void* blocked,
                                       int threads) const {
  const int64_t stride = taps_ * channels_;
  const uint16_t* const from = static_cast<const uint16_t*>(plain);
  uint16_t* const to = static_cast<uint16_t*>(blocked);
  ForColumns(threads, channels_,
             [&](int64_t block, int64_t tap, int64_t first, int64_t end) {
               const uint16_t* const rows =
                   from + block * block_ * stride + tap * channels_ + first;
               uint16_t* const panels = to + At(block, tap, first / kSide);
               const auto fill = [&](int64_t row, int64_t pairs, bool second) {
                 const uint16_t* const x = rows + row * stride;
                 FillPanels({x, second ? x + stride : nullptr, 2 * stride},
                            pairs, end - first, group_stride_ / 2,
                            reinterpret_cast<float*>(panels + row * kSide));
               };
               const int64_t n = std::min(block_, filters_ - block * block_);
               fill(0, n / 2, true);
               if (n % 2 != 0) fill(n - 1, 1, false);
               for (int64_t p = 0; p < PanelsOf(end - first); ++p) {
                 std::fill(panels + p * group_stride_ + (n + 1) / 2 * 2 * kSide,
                           panels + p * group_stride_ + block_ * kSide,
                           uint16_t{0});
               }
             });
}

void BlockedFilter::Pack(const void* plain, void* blocked, int threads) const {
  switch (form_) {
    case Form::kFilters:
      return bf16_ ? PackWords<uint16_t>(plain, blocked, threads)
                   : PackWords<uint32_t>(plain, blocked, threads);
    case Form::kFiltersOfPairs:
      return channels_ % 2 == 0 ? PackWords<uint32_t>(plain, blocked, threads)
                                : PackOddPairs(plain, blocked);
    case Form::kPairsOfFilters:
      return PackPairsOfFilters(plain, blocked, threads);
  }
}

void BlockedFilter::Unpack(const void* blocked, void* plain,
                           int threads) const {
  return bf16_ ? UnpackWords<uint16_t>(blocked, plain, threads)
               : UnpackWords<uint32_t>(blocked, plain, threads);
}

}  // namespace kernels
}  // namespace halftone

// Filters of convolutions in the blocked formats that oneDNN multiplies by. Its
// own reorders to and from channels-last filters move a fraction of what caches
// could, and every step needs what the update has made of every filter.
#ifndef HALFTONE_KERNELS_CPU_BLOCKED_FILTER_H_
#define HALFTONE_KERNELS_CPU_BLOCKED_FILTER_H_

#include <cstdint>
#include <optional>

#include "dnnl.hpp"

namespace halftone {
namespace kernels {

// A filter [filters, channels, height, width] of f32 or bf16, once with
// channels last and dense ("acdb" in the library's words), and once in blocks:
//   "Acdb64a", of any multiple of 16: a block of filters side by side for each
//     channel;
//   "AcdB64a2b", likewise, of bf16: for each pair of channels; "AcdB16b64a2b",
//     for AMX: of 16 pairs that stand together;
//   "ABcd8a16b2a", "BAcd8a16b2a", of bf16, with 16 in place of 8 for AMX: 16 or
//     32 filters, in pairs, by 16 channels.
// What a format has beyond the filter is zeros.
class BlockedFilter {
 public:
  // None where either lies otherwise.
  static std::optional<BlockedFilter> Of(const dnnl::memory::desc& plain,
                                         const dnnl::memory::desc& blocked);

  void Pack(const void* plain, void* blocked, int threads) const;
  // The other way; of the first format alone, as those of pairs are of no
  // gradient.
  bool CanUnpack() const { return form_ == Form::kFilters; }
  void Unpack(const void* blocked, void* plain, int threads) const;

 private:
  enum class Form { kFilters, kFiltersOfPairs, kPairsOfFilters };

  int64_t blocks() const { return (filters_ + block_ - 1) / block_; }
  // body(block, tap, first, end): a block of filters, some of their columns.
  template <typename Body>
  void ForColumns(int threads, int64_t columns, const Body& body) const;
  // Word: an element, or a pair of channels.
  template <typename Word>
  void PackWords(const void* plain, void* blocked, int threads) const;
  template <typename Word>
  void UnpackWords(const void* blocked, void* plain, int threads) const;
  void PackOddPairs(const void* plain, void* blocked) const;
  void PackPairsOfFilters(const void* plain, void* blocked, int threads) const;

  // Where what a block has of a tap begins for a group of columns: 16 channels,
  // or pairs of them.
  int64_t At(int64_t block, int64_t tap, int64_t group) const {
    return block * filter_stride_ + tap * tap_stride_ + group * group_stride_;
  }

  Form form_ = Form::kFilters;
  bool bf16_ = false;
  int64_t filters_ = 0, channels_ = 0, taps_ = 0;
  int64_t made_channels_ = 0;  // with those that are zeros
  int64_t block_ = 0;          // filters of one
  // Elements from a block of filters to the next, from a tap, from a group of
  // columns, and from a column to the next in it.
  int64_t filter_stride_ = 0, tap_stride_ = 0, group_stride_ = 0, step_ = 0;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_BLOCKED_FILTER_H_

#include "kernels/cpu/amx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/onednn.h"

#ifdef HT_ISA_X86
#include <cpuid.h>
#endif

namespace halftone {
namespace kernels {

#ifdef HT_ISA_X86

namespace {

#define HT_TARGET_AMX __attribute__((target("amx-tile,amx-bf16")))

// Registers: sums of two tiles of rows and two panels, and their factors.
constexpr int kSums = 0, kLeft = 4, kRight = 6;

// What LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// The instructions are written out with what they do to memory, which GCC 12's
// intrinsics leave out of loads.
HT_TARGET_AMX inline void Configure(const TileConfig& config) {
  asm volatile("ldtilecfg %0" ::"m"(config));
}
HT_TARGET_AMX inline void Release() { asm volatile("tilerelease"); }
template <int kTile>
HT_TARGET_AMX inline void LoadTile(const float* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,4), %%tmm%c2" ::"r"(from), "r"(stride),
               "i"(kTile)
               : "memory");
}
template <int kTile>
HT_TARGET_AMX inline void StoreTile(float* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,4)" ::"r"(to), "r"(stride),
               "i"(kTile)
               : "memory");
}
template <int kTile>
HT_TARGET_AMX inline void ClearTile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTo, int kX, int kY>
HT_TARGET_AMX inline void AddTileProduct() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kTo), "i"(kX),
               "i"(kY));
}

// Cuts it evenly, as rows of a left factor are read in place; false if that
// leaves columns too few for an instruction.
bool CutEvenly(DepthBlocks* blocks) {
  constexpr int64_t kFewColumns = 4;
  const int64_t depth = blocks->depth;
  while (blocks->count * kFewColumns <= depth && depth % blocks->count != 0) {
    ++blocks->count;
  }
  blocks->columns = depth / blocks->count;
  return blocks->columns >= kFewColumns;
}

// One or two tiles of rows, each with its own number of them.
struct RowTiles {
  int64_t rows[2] = {0, 0};
  const float* left[2] = {nullptr, nullptr};
  float* out[2] = {nullptr, nullptr};
};

TileConfig ConfigOf(const RowTiles& tiles, int64_t columns) {
  TileConfig config;
  const auto set = [&config](int tile, int64_t rows, int64_t floats) {
    config.rows[tile] = static_cast<uint8_t>(rows);
    config.row_bytes[tile] = static_cast<uint16_t>(floats * sizeof(float));
  };
  for (int t = 0; t < 2 && tiles.rows[t] > 0; ++t) {
    for (int p = 0; p < 2; ++p) set(kSums + 2 * t + p, tiles.rows[t], kPanel);
    set(kLeft + t, tiles.rows[t], columns);
  }
  for (int p = 0; p < 2; ++p) set(kRight + p, columns, kPanel);
  return config;
}

template <int kTiles, int kPanels>
HT_TARGET_AMX void MultiplyTiles(const PartsProduct& p,
                                 const DepthBlocks& blocks,
                                 const RowTiles& tiles, const float* panel,
                                 bool add, int64_t column, int64_t out_stride) {
  constexpr int kTwo = kTiles - 1, kWide = kPanels - 1;  // 0 or 1
  float* const out = tiles.out[0] + column;
  float* const next_out = tiles.out[kTwo] + column;
  if (add) {
    LoadTile<kSums>(out, out_stride);
    if (kWide) LoadTile<kSums + 1>(out + kPanel, out_stride);
    if (kTwo) LoadTile<kSums + 2>(next_out, out_stride);
    if (kTwo && kWide) LoadTile<kSums + 3>(next_out + kPanel, out_stride);
  } else {
    ClearTile<kSums>();
    if (kWide) ClearTile<kSums + 1>();
    if (kTwo) ClearTile<kSums + 2>();
    if (kTwo && kWide) ClearTile<kSums + 3>();
  }
  const int64_t left_stride = p.blocks ? kPanel : p.left.stride;
  const int64_t left_step = p.blocks ? kBlockFloats : blocks.columns;
  const int64_t right_step = p.right.row_step;
  for (const DepthPart& part : p.parts) {
    for (int64_t b = 0; b < blocks.count; ++b) {
      const int64_t at = part.left + b * left_step;
      const float* const right =
          panel + part.right + blocks.First(b) * right_step;
      LoadTile<kRight>(right, right_step);
      LoadTile<kLeft>(tiles.left[0] + at, left_stride);
      AddTileProduct<kSums, kLeft, kRight>();
      if (kWide) {
        LoadTile<kRight + 1>(right + p.right.stride, right_step);
        AddTileProduct<kSums + 1, kLeft, kRight + 1>();
      }
      if (kTwo) {
        LoadTile<kLeft + 1>(tiles.left[1] + at, left_stride);
        AddTileProduct<kSums + 2, kLeft + 1, kRight>();
      }
      if (kTwo && kWide) {
        AddTileProduct<kSums + 3, kLeft + 1, kRight + 1>();
      }
    }
  }
  StoreTile<kSums>(out, out_stride);
  if (kWide) StoreTile<kSums + 1>(out + kPanel, out_stride);
  if (kTwo) StoreTile<kSums + 2>(next_out, out_stride);
  if (kTwo && kWide) StoreTile<kSums + 3>(next_out + kPanel, out_stride);
}

template <int kTiles>
void MultiplyPanels(const PartsProduct& p, const DepthBlocks& blocks,
                    const RowTiles& tiles, bool add, int64_t out_stride) {
  int64_t panel = 0;
  for (; panel + 2 <= p.panels; panel += 2) {
    MultiplyTiles<kTiles, 2>(p, blocks, tiles,
                             p.right.data + panel * p.right.stride, add,
                             panel * kPanel, out_stride);
  }
  if (panel < p.panels) {
    MultiplyTiles<kTiles, 1>(p, blocks, tiles,
                             p.right.data + panel * p.right.stride, add,
                             panel * kPanel, out_stride);
  }
}

// The system keeps a thread's tiles only for processes that ask for it.
bool AskForTiles() {
  constexpr int kXcompRequest = 0x1023, kTileData = 18;  // asm/prctl.h
  return syscall(SYS_arch_prctl, kXcompRequest, kTileData) == 0;
}

bool FindAmx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAmx = 1u << 22 | 1u << 24;  // of bf16, and tiles
  return HasPairs() && OnednnHasAmx() &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kAmx) == kAmx &&
         AskForTiles();
}

}  // namespace

bool HasAmx() {
  static const bool has = FindAmx();
  return has;
}

bool MultiplyAmx(const PartsProduct& p, bool add, float* out,
                 int64_t out_stride) {
  DepthBlocks blocks(p.depth);
  if (!p.blocks) {
    const bool lies_by_rows = p.tile_stride == 0 && p.left.column_stride == 1;
    if (!HasAmx() || !lies_by_rows || p.depth == 0) return false;
    if (!CutEvenly(&blocks)) return false;
  }
  // An even number of tiles, as two share what is loaded of a panel; an
  // instruction takes as long as its rows are many.
  int64_t count = (p.rows + kBlockRows - 1) / kBlockRows;
  if (!p.blocks && count > 1) count += count % 2;
  const auto begin = [&](int64_t tile) {
    return p.blocks ? std::min(p.rows, tile * kBlockRows)
                    : p.rows * tile / count;
  };
  RowTiles configured;
  for (int64_t tile = 0; tile < count; tile += 2) {
    RowTiles tiles;
    for (int64_t t = tile; t < std::min(count, tile + 2); ++t) {
      tiles.rows[t - tile] = begin(t + 1) - begin(t);
      tiles.left[t - tile] =
          p.left.data +
          (p.blocks ? t * p.tile_stride : begin(t) * p.left.stride);
      tiles.out[t - tile] = out + begin(t) * out_stride;
    }
    if (!std::equal(tiles.rows, tiles.rows + 2, configured.rows)) {
      Configure(ConfigOf(tiles, blocks.columns));
      configured = tiles;
    }
    if (tiles.rows[1] > 0) {
      MultiplyPanels<2>(p, blocks, tiles, add, out_stride);
    } else {
      MultiplyPanels<1>(p, blocks, tiles, add, out_stride);
    }
  }
  Release();
  return true;
}

#else

bool HasAmx() { return false; }
bool MultiplyAmx(const PartsProduct&, bool, float*, int64_t) { return false; }

#endif  // HT_ISA_X86

}  // namespace kernels
}  // namespace halftone

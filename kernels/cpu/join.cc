// Joins of tensors and cuts into several: copies of rows.
#include "kernels/common/join.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/isa.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

// Rows of one element: each a move of its own.
template <typename T>
void CopyElements(const char* from, int64_t from_stride, char* to,
                  int64_t to_stride, int64_t rows, int threads) {
  const int64_t grain = kCopyGrain / int64_t{sizeof(T)};
  ParallelFor(threads, rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      memcpy(to + r * to_stride, from + r * from_stride, sizeof(T));
    }
  });
}

// Two to four parts of one element each, in one pass.
constexpr size_t kMostWoven = 4;

bool IsWoven(const Join& join) {
  const size_t n = join.parts.size();
  const int64_t bytes = join.parts.empty() ? 0 : join.parts[0];
  return n >= 2 && n <= kMostWoven &&
         (bytes == 2 || bytes == 4 || bytes == 8) &&
         join.row == bytes * static_cast<int64_t>(n) &&
         std::all_of(join.parts.begin(), join.parts.end(),
                     [&](int64_t part) { return part == bytes; });
}

// `joined` to the parts if kCut, else the parts to it.
template <bool kCut, typename T, int kParts, typename Parts, typename Joined>
void WeaveParts(const Parts& parts, Joined joined, int64_t rows, int threads) {
  using Element = std::conditional_t<kCut, T, const T>;
  using Whole = std::conditional_t<kCut, const T, T>;
  std::array<Element*, kParts> part;
  for (int k = 0; k < kParts; ++k) part[k] = static_cast<Element*>(parts[k]);
  Whole* whole = reinterpret_cast<Whole*>(joined);
  const int64_t grain = kCopyGrain / int64_t{sizeof(T)};
  ParallelFor(threads, rows, grain, [=](int64_t begin, int64_t end) {
    ForIsa([=] {
#pragma GCC ivdep
      for (int64_t r = begin; r < end; ++r) {
#pragma GCC unroll 4
        for (int k = 0; k < kParts; ++k) {
          if constexpr (kCut) {
            part[k][r] = whole[r * kParts + k];
          } else {
            whole[r * kParts + k] = part[k][r];
          }
        }
      }
    });
  });
}
template <bool kCut, typename Parts, typename Joined>
void Weave(const Join& join, const Parts& parts, Joined joined, int threads) {
  const auto weave = [&](auto zero) {
    using T = decltype(zero);
    if (join.parts.size() == 2) {
      WeaveParts<kCut, T, 2>(parts, joined, join.outer, threads);
    } else if (join.parts.size() == 3) {
      WeaveParts<kCut, T, 3>(parts, joined, join.outer, threads);
    } else {
      WeaveParts<kCut, T, 4>(parts, joined, join.outer, threads);
    }
  };
  if (join.parts[0] == 2) return weave(uint16_t());
  if (join.parts[0] == 4) return weave(uint32_t());
  weave(uint64_t());
}

void CopyParts(const char* from, int64_t from_stride, char* to,
               int64_t to_stride, int64_t rows, int64_t bytes, int threads) {
  const auto element = [&](auto zero) {
    CopyElements<decltype(zero)>(from, from_stride, to, to_stride, rows,
                                 threads);
  };
  if (bytes == 2) return element(uint16_t());
  if (bytes == 4) return element(uint32_t());
  if (bytes == 8) return element(uint64_t());
  CopyRows(from, from_stride, to, to_stride, rows, bytes, threads);
}

// Whole rows of the joined tensor one after the other, where its parts are too
// short for passes of their own.
bool HasShortRows(const Join& join) {
  constexpr int64_t kMostBytes = 4096, kElementBytes = 8;
  return join.row <= kMostBytes &&
         std::all_of(join.parts.begin(), join.parts.end(),
                     [](int64_t bytes) { return bytes > kElementBytes; });
}

// `joined` to the parts if kCut, else the parts to it.
template <bool kCut, typename Parts, typename Joined>
void CopyShortRows(const Join& join, Parts parts, Joined joined, int threads) {
  const int64_t grain = std::max<int64_t>(1, kCopyGrain / join.row);
  ParallelFor(threads, join.outer, grain, [&](int64_t begin, int64_t end) {
    ForIsa([&] {
      for (int64_t r = begin; r < end; ++r) {
        auto* whole = joined + r * join.row;
        for (size_t i = 0; i < join.parts.size(); ++i) {
          const int64_t bytes = join.parts[i];
          if constexpr (kCut) {
            CopyShort(whole, static_cast<char*>(parts[i]) + r * bytes, bytes);
          } else {
            CopyShort(static_cast<const char*>(parts[i]) + r * bytes, whole,
                      bytes);
          }
          whole += bytes;
        }
      }
    });
  });
}

auto MakeJoin(const BoundOp& op) {
  return [join = JoinOf(op, false)](const Buffers& buffers,
                                    runtime::Stream& stream) {
    char* to = static_cast<char*>(buffers.outputs[0]);
    if (IsWoven(join)) {
      return Weave<false>(join, buffers.inputs, to, stream.threads());
    }
    if (HasShortRows(join)) {
      return CopyShortRows<false>(join, buffers.inputs, to, stream.threads());
    }
    for (size_t i = 0; i < join.parts.size(); ++i) {
      CopyParts(static_cast<const char*>(buffers.inputs[i]), join.parts[i], to,
                join.row, join.outer, join.parts[i], stream.threads());
      to += join.parts[i];
    }
  };
}

auto MakeCut(const BoundOp& op) {
  return [join = JoinOf(op, true)](const Buffers& buffers,
                                   runtime::Stream& stream) {
    const char* from = static_cast<const char*>(buffers.inputs[0]);
    if (IsWoven(join)) {
      return Weave<true>(join, buffers.outputs, from, stream.threads());
    }
    if (HasShortRows(join)) {
      return CopyShortRows<true>(join, buffers.outputs, from, stream.threads());
    }
    for (size_t i = 0; i < join.parts.size(); ++i) {
      CopyParts(from, join.row, static_cast<char*>(buffers.outputs[i]),
                join.parts[i], join.outer, join.parts[i], stream.threads());
      from += join.parts[i];
    }
  };
}

}  // namespace

void RegisterCpuJoin(KernelRegistry& registry) {
  for (const char* op : {"concat", "stack"}) {
    AddForSchema(registry, op, MakeCandidate("copy", MakeJoin));
  }
  for (const char* op : {"concat_grad", "split", "unstack"}) {
    AddForSchema(registry, op, MakeCandidate("copy", MakeCut));
  }
}

}  // namespace kernels
}  // namespace halftone

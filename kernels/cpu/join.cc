// Joins of tensors and cuts into several: copies of rows.
#include "kernels/common/join.h"

#include <cstring>

#include "kernels/common/dispatch.h"
#include "kernels/cpu/copy.h"
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

auto MakeJoin(const BoundOp& op) {
  return [join = JoinOf(op, false)](const Buffers& buffers,
                                    runtime::Stream& stream) {
    char* to = static_cast<char*>(buffers.outputs[0]);
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

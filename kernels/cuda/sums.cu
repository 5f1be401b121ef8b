#include "kernels/cuda/sums.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Blocks that keep a large GPU busy, and as many pieces as one warp adds up in
// no time.
constexpr int64_t kBlocks = 1024;
// Summands of a piece at least: below that its start costs more.
constexpr int64_t kLeast = 64;
// Elements of a run's piece at least.
constexpr int64_t kLeastRun = 4096;

int64_t RoundUp(int64_t n, int64_t to) { return CeilDiv(n, to) * to; }

}  // namespace

void SumShape::Cut() {
  if (summands == 0 || outputs * columns == 0) {
    pieces = 0;
    length = 1;
    return;
  }
  const int64_t beside =
      outputs * (columns > 1 ? CeilDiv(columns, 32 * 8) : int64_t{1});
  const int64_t wanted = std::max<int64_t>(1, kBlocks / beside);
  const int64_t least = columns > 1 ? kLeast : kLeastRun;
  // Vectors do not cross from one piece to the next.
  length = RoundUp(
      std::min(summands, std::max(least, CeilDiv(summands, wanted))), 8);
  pieces = CeilDiv(summands, length);
}

SumShape SumShape::OfChannels(int64_t rows, int64_t channels, int64_t inner,
                              DType dtype) {
  SumShape shape;
  const int widest = VectorOf({dtype});
  Nest reduced, kept;
  if (inner == 1) {
    shape.columns = channels;
    shape.summands = rows;
    reduced.dims = {rows};
    reduced.strides = {channels};
  } else {
    shape.outputs = channels;
    shape.summands = rows * inner;
    kept.dims = {channels};
    kept.strides = {inner};
    reduced.dims = {rows, inner};
    reduced.strides = {channels * inner, 1};
  }
  const int64_t run = inner == 1 ? channels : inner;
  for (int v : {8, 4}) {
    if (v <= widest && run % v == 0) {
      shape.vector = v;
      break;
    }
  }
  shape.kept = Loops(kept);
  shape.reduced = Loops(reduced);
  shape.Cut();
  return shape;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

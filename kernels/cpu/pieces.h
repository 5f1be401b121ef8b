// Lists of tensors cut into pieces of bounded length, so that one launch works
// on all of them and the cut does not depend on the number of threads.
#ifndef HALFTONE_KERNELS_CPU_PIECES_H_
#define HALFTONE_KERNELS_CPU_PIECES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/bound_op.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"

namespace halftone {
namespace kernels {

struct Piece {
  int32_t member;
  int64_t begin, n;  // elements
};

class Pieces {
 public:
  // Elements of a piece at most.
  static constexpr int64_t kLength = 16 * kConvertBlock;

  Pieces() = default;
  explicit Pieces(absl::Span<const TensorDesc> members) {
    for (size_t i = 0; i < members.size(); ++i) {
      const int64_t elements = members[i].elements();
      elements_ += elements;
      for (int64_t at = 0; at < elements; at += kLength) {
        pieces_.push_back(
            {static_cast<int32_t>(i), at, std::min(kLength, elements - at)});
      }
    }
  }

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  const Piece& operator[](int64_t i) const { return pieces_[i]; }

  // body(index, piece) for each, in parallel where it is worth it.
  template <typename Body>
  void ForEach(int threads, const Body& body) const {
    const int64_t grain = elements_ <= 2 * kLength ? size() : 1;
    ParallelFor(threads, size(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i, pieces_[i]);
    });
  }

 private:
  std::vector<Piece> pieces_;
  int64_t elements_ = 0;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_PIECES_H_

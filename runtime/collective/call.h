// What a rank asks of a collective, in words for errors and in bits for checks.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_CALL_H_
#define HALFTONE_RUNTIME_COLLECTIVE_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "runtime/collective/communicator.h"

namespace halftone {
namespace runtime {

enum class Collective : uint8_t {
  kAllReduce,
  kBroadcast,
  kAllGather,
  kGatherParts,
  kBarrier,
  kReduceScatter
};

absl::string_view Name(Collective collective);  // "all_reduce", ...

struct Call {
  Collective collective = Collective::kBarrier;
  DType dtype{};  // of a reduction
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  // of a broadcast
  // Elements of an all_reduce or of a reduce_scatter's part, bytes of a
  // broadcast or part.
  int64_t count = 0;
  float pre_scale = 1;

  friend bool operator==(const Call& a, const Call& b) {
    return a.collective == b.collective && a.dtype == b.dtype && a.op == b.op &&
           a.root == b.root && a.count == b.count && a.pre_scale == b.pre_scale;
  }
  friend bool operator!=(const Call& a, const Call& b) { return !(a == b); }
};

// "all_reduce (sum of 28,938 f16)", "broadcast (512 bytes from rank 0)".
std::string Describe(const Call& call);

// "rank 3", "ranks 0, 2 and 3"; many are cut short.
std::string RankList(absl::Span<const int> ranks);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_CALL_H_

// Which gradients share a reduction: DDP's rule on plain numbers.
#ifndef HALFTONE_PASSES_PARALLEL_BUCKETS_H_
#define HALFTONE_PASSES_PARALLEL_BUCKETS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "passes/parallel/bucket_allreduce.h"

namespace halftone {
namespace passes {

struct BucketItem {
  DType dtype{};
  int64_t bytes = 0;
};

struct Bucket {
  DType dtype{};
  int64_t bytes = 0;
  std::vector<int> items;  // ascending
};

// Assigns `items`, given in gradient-ready order, to buckets, which come in
// the order of their last items; see BucketAllreduce.
std::vector<Bucket> AssignBuckets(absl::Span<const BucketItem> items,
                                  const proto::Dist& dist, bool join_stranded);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_BUCKETS_H_

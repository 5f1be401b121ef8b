#include "passes/parallel/buckets.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "graph/base/dtype.h"

namespace halftone {
namespace passes {
namespace {

// The buckets of one dtype so far.
struct Line {
  std::vector<Bucket> closed;
  Bucket open;
};

void Close(Line& line) {
  if (line.open.items.empty()) return;
  line.closed.push_back(std::exchange(line.open, Bucket()));
}

int64_t Bytes(double mebibytes) {
  return std::max<int64_t>(1, std::llround(mebibytes * (1 << 20)));
}

void JoinStranded(std::vector<Bucket>& buckets, int64_t first_bytes) {
  if (buckets.size() < 2 || buckets.back().bytes >= first_bytes) return;
  const Bucket last = std::move(buckets.back());
  buckets.pop_back();
  Bucket& joined = buckets.back();
  joined.bytes += last.bytes;
  joined.items.insert(joined.items.end(), last.items.begin(), last.items.end());
}

}  // namespace

std::vector<Bucket> AssignBuckets(absl::Span<const BucketItem> items,
                                  const proto::Dist& dist, bool join_stranded) {
  // Elements, where the strategy says so.
  const bool counts = dist.has_message_size();
  const int64_t first_bytes = Bytes(dist.first_bucket_size_in_mb());
  const int64_t bytes = Bytes(dist.fuse_grad_size_in_mb());
  const bool fuse = dist.fuse_all_reduce_ops();
  std::map<DType, Line> lines;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    Line& line = lines[items[i].dtype];
    line.open.dtype = items[i].dtype;
    line.open.bytes += items[i].bytes;
    line.open.items.push_back(i);
    const int64_t limit = line.closed.empty() ? first_bytes : bytes;
    const bool full =
        counts ? line.open.bytes / SizeOf(items[i].dtype) >= dist.message_size()
               : line.open.bytes >= limit;
    if (!fuse || full) Close(line);
  }
  std::vector<Bucket> buckets;
  for (auto& [dtype, line] : lines) {
    Close(line);
    if (fuse && join_stranded && !counts)
      JoinStranded(line.closed, first_bytes);
    for (Bucket& bucket : line.closed) buckets.push_back(std::move(bucket));
  }
  std::sort(buckets.begin(), buckets.end(),
            [](const Bucket& a, const Bucket& b) {
              return a.items.back() < b.items.back();
            });
  return buckets;
}

}  // namespace passes
}  // namespace halftone

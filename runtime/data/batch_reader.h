// Batches read ahead in the background.
#ifndef HALFTONE_RUNTIME_DATA_BATCH_READER_H_
#define HALFTONE_RUNTIME_DATA_BATCH_READER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"

namespace halftone {
namespace runtime {

// One step's feeds, assembled in the background.
struct Batch {
  int64_t epoch = 0, step = 0;
  Share share;
  std::vector<std::vector<uint8_t>> feeds;  // by spec
};

// Reads ahead with worker threads; Next returns batches in order.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  // The batch of the next step; nullptr after the last one. The pointer
  // lives until the next call but one. An error is returned once, then
  // again on every call.
  virtual absl::StatusOr<const Batch*> Next() = 0;
  // Seconds that Next has waited so far.
  virtual double waited_seconds() const = 0;
  // What the workers have done so far.
  struct Work {
    int workers = 0;
    int64_t samples = 0;
    double seconds = 0;  // of all workers together
  };
  virtual Work work() const = 0;
};

struct ReaderOptions {
  int workers = 1;
  int prefetch = 3;                         // batches
  int64_t first_epoch = 0, first_step = 0;  // where to start (resume)
  int64_t epochs = 1;
};
std::unique_ptr<BatchReader> MakeBatchReader(const Dataset* data,
                                             std::vector<FeedSpec> feeds,
                                             const SamplerOptions& sampler,
                                             const ReaderOptions& options);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_BATCH_READER_H_

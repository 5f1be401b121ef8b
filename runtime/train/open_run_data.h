// The data of a run, opened once in each of its processes.
#ifndef HALFTONE_RUNTIME_TRAIN_OPEN_RUN_DATA_H_
#define HALFTONE_RUNTIME_TRAIN_OPEN_RUN_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "runtime/collective/communicator.h"
#include "runtime/data/dataset.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

// Shared by the ranks of a process.
struct RunData {
  std::vector<FeedSpec> specs;
  OpenedData opened, opened_for_eval;
  const Dataset* train = nullptr;
  const Dataset* test = nullptr;  // null: there is nothing to evaluate on
  std::string marks;              // Dataset::Marks of what is trained on
  uint64_t content_hash = 0;      // Dataset::ContentHash of it
};

// `trained_on`: with the strategy's random changes; else a source without
// splits is what to evaluate on. Of several processes, each looks for its share
// of broken samples, and leaves none out yet.
absl::StatusOr<RunData> OpenRunData(const Program& program,
                                    const TrainConfig& config, bool trained_on,
                                    int process = 0, int processes = 1);

// A collective. The first rank of each process opens the data into `*data`; its
// other ranks give null, and may read it when this comes back. Broken samples
// that one process has found are left out by all. Errors are those of peers:
// why the data could not be opened is in `*data`.
absl::Status OpenDataTogether(const Program& program, const TrainConfig& config,
                              bool trained_on, int ranks_of_process,
                              Communicator& communicator,
                              absl::StatusOr<RunData>* data);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_OPEN_RUN_DATA_H_

// A model that trains on one device with data that is already there: what
// train_benchmark measures.
#ifndef HALFTONE_TESTS_BENCHMARKS_TRAINED_MODEL_H_
#define HALFTONE_TESTS_BENCHMARKS_TRAINED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "kernels/kernel_registry.h"
#include "runtime/collective/communicator.h"
#include "runtime/data/batch_reader.h"
#include "runtime/exec/executor.h"
#include "runtime/train/feeds.h"

namespace halftone {

// Where steps run, and the kernels there.
struct BenchmarkDevice {
  std::unique_ptr<runtime::Device> device;
  const kernels::KernelRegistry* kernels = nullptr;
  std::vector<std::string> keys;  // of the device's target
};
// `gpu` < 0: the CPU with `threads` threads. Otherwise the CUDA code is taken
// from the file `library`. Errors: kDevice.
absl::StatusOr<BenchmarkDevice> OpenBenchmarkDevice(int gpu, int threads,
                                                    const std::string& library);

struct TrainedModelSpec {
  std::string model = "resnet50";  // a name of the zoo, or a file
  std::string level = "O1", dtype = "fp16";
  int64_t batch = 256;
  int64_t sequence = 0;         // tokens; 0: the zoo's
  bool dynamic_scaling = true;  // else constant, from the same value
  bool use_graphs = true;
  bool deterministic = true;  // else also kernels whose bits vary
  bool copy_feeds = false;    // the batch crosses the bus in every step
};

class TrainedModel {
 public:
  // Compiles, plans and initialises; `device` outlives the result.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Create(
      const TrainedModelSpec& spec, const BenchmarkDevice& device);

  // One step; milliseconds since the last one was enqueued. Steps overlap as in
  // a training: results are read two steps late, and once that many are under
  // way, this is what a step takes.
  absl::StatusOr<double> Step();
  // Waits for the steps that are under way.
  absl::Status Finish();

  double loss() const { return loss_; }  // of the last step that was read
  int64_t rejected() const { return rejected_; }
  double scale() const { return scale_; }
  // Host time of the last Execute, in microseconds: on the CPU the step itself.
  double enqueue_us() const { return enqueue_us_; }
  // What one step takes of device memory, and casts that run on their own.
  int64_t peak_bytes() const { return executor_->plan(binding_).peak_bytes(); }
  int64_t planned_steps() const {
    return static_cast<int64_t>(executor_->plan(binding_).steps.size());
  }
  int64_t standalone_casts() const;

 private:
  TrainedModel() = default;
  absl::Status Compile(const TrainedModelSpec& spec,
                       const BenchmarkDevice& device);
  absl::Status MakeBatch(int64_t batch);
  absl::Status Read();

  CompiledModel model_;
  std::unique_ptr<runtime::Communicator> communicator_;
  std::vector<runtime::FeedSpec> specs_;
  runtime::OpenedData data_;
  std::unique_ptr<runtime::BatchReader> reader_;
  const runtime::Batch* batch_ = nullptr;
  runtime::ImplicitFeeds implicit_;
  std::unique_ptr<runtime::FeedList> feeds_;
  std::vector<runtime::FeedData> fed_;  // of the step at hand
  bool copy_feeds_ = false;
  std::unique_ptr<runtime::Executor> executor_;
  int binding_ = -1;
  int64_t next_to_read_ = 0;
  int64_t executed_ = 0;
  double last_enqueued_ms_ = 0;
  double loss_ = 0, scale_ = 0, enqueue_us_ = 0;
  int64_t rejected_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_TESTS_BENCHMARKS_TRAINED_MODEL_H_

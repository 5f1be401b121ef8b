// How a run starts and ends: facts alone. With step_events.h they are all that
// those who show or keep them (run_observer.h) know of it.
#ifndef HALFTONE_RUNTIME_REPORT_RUN_EVENTS_H_
#define HALFTONE_RUNTIME_REPORT_RUN_EVENTS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/strategy.pb.h"
#include "runtime/log/graph_def.h"
#include "runtime/report/step_events.h"

namespace halftone {
namespace runtime {

// The checkpoint that a run goes on from, and how the run was that wrote it.
struct Resumed {
  int64_t step = 0, applied = 0;  // attempted steps, and those applied
  int64_t epoch = 1, sample = 0;  // the next sample's
  float loss_scaling = 1;
  int64_t good_steps = 0;
  bool fresh_scale = false;  // neither of these two goes on
  std::string fingerprint, level, tuning_hash;
  int64_t seed = 0;
  std::optional<double> threads;  // per rank; it may not be known
  int world_size = 1;
  std::map<std::string, std::string> settings;  // as RunStarted's; or none
};
struct RunStarted {
  proto::Strategy strategy;  // resolved
  std::string fingerprint;   // of the program
  std::string tuning_hash;
  std::string data;  // as named: "idx:models/digits"
  std::string out;   // the run directory; empty: nothing is written
  bool shuffle = true, deterministic = true;
  int world_size = 1, threads = 1;  // of each rank
  // What else a step depends on, by name: "batch size" -> "64". Of what is long
  // to say a hash, behind a #.
  std::map<std::string, std::string> settings;
  // What of a step is another with another number of ranks, beyond rounding:
  // "batch norms take each rank's samples".
  std::vector<std::string> by_ranks;
  int64_t train_samples = 0;
  std::optional<int64_t> test_samples;  // none: there is no test split
  int64_t left_out = 0;                 // broken samples, of both
  int64_t batch = 0;                    // samples of all ranks that were asked
  // Those of a step, and behind them those of an epoch's last if it has fewer.
  std::vector<int64_t> step_samples;
  int64_t steps_per_epoch = 0;
  int64_t total_steps = 0;           // with those before, where it goes on
  bool images = false;               // which the samples are
  bool parts_known = true;           // the device says what takes a step's time
  std::vector<std::string> metrics;  // in the model's order
  std::vector<std::string> notes;    // to be said before the first step
  std::optional<Resumed> resumed;
};

// What a step computes.
struct GraphEvent {
  std::vector<GraphNode> nodes;
};
// Of all steps but the first.
struct StepSpeed {
  double samples_per_second = 0, median_ms = 0, p95_ms = 0;
  double first_ms = 0;  // of the one left out
};
// run --profile: what each class of work took of the steps that count, and the
// ops that took most.
struct ProfileTable {
  struct Row {
    std::string name;  // "conv forward"
    double ms = 0;     // per step
    int64_t kernels = 0;
    double bytes = 0, flops = 0;
    std::optional<double> roofline_ms;  // the device's rates are known
  };
  struct Op {
    std::string name;    // "conv1"
    std::string kernel;  // "conv2d onednn"
    std::string shape;   // of its largest output: "f16[64,16,28,28]"
    double ms = 0;       // per step
    double bytes = 0, flops = 0;
    // The device's rates are known.
    std::optional<double> roofline_ms, predicted_ms;
    std::string bound;  // "flops", "bytes", "link", "launch"
    std::string hint;   // what would help; empty: nothing known
  };
  std::string device;
  bool measured = false;  // the device's rates are, by tune
  int64_t steps = 0;
  double step_ms = 0;
  std::vector<Row> rows;
  std::vector<Op> dearest;
};
// Of all steps that showed what was fetched.
struct FetchCost {
  int64_t steps = 0;
  double seconds = 0;
  bool exponents_alone = false;  // nothing else was fetched
};
// `exit_code` is the process's; one that a signal stopped (0: none) has it in
// the code.
struct RunEnded {
  int exit_code = 0, signal = 0;
  int64_t step = 0, applied = 0;  // attempted steps, and those applied
  int64_t epoch = 0;              // whole ones
  // Means of the first and the last step event.
  double first_loss = std::numeric_limits<double>::quiet_NaN();
  double last_loss = std::numeric_limits<double>::quiet_NaN();
  float loss_scaling = 1;
  std::vector<ScaleEvent> scale_events;  // the last ones
  std::optional<EvalEvent> eval;         // the run's last
  std::optional<int64_t> best_epoch;
  std::optional<StepSpeed> speed;  // there was more than one step
  StepTimes spent;                 // by all steps
  double seconds = 0, eval_seconds = 0, checkpoint_seconds = 0;
  // By this rank's reader threads, in so many seconds of theirs.
  int reading_workers = 0;
  int64_t samples_read = 0;
  double reading_seconds = 0;
  int64_t peak_bytes = 0, planned_bytes = 0;  // of this rank
  int64_t optimizer_bytes = 0;          // likewise: what only updates need
  std::optional<ProfileTable> profile;  // it was asked for
  std::optional<FetchCost> fetches;     // likewise
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_RUN_EVENTS_H_

// What happens between a run's start and its end: facts alone.
#ifndef HALFTONE_RUNTIME_REPORT_STEP_EVENTS_H_
#define HALFTONE_RUNTIME_REPORT_STEP_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/report/exponents.h"

namespace halftone {
namespace runtime {

// Milliseconds of one step, or sums of several. The parts exclude each other:
// `communicate` is what nothing else hid.
struct StepTimes {
  double total = 0, data = 0, forward_backward = 0, communicate = 0, update = 0;
  // What the parts leave of the total.
  double other() const {
    const double parts = data + forward_backward + communicate + update;
    return total > parts ? total - parts : 0;
  }
  void Add(const StepTimes& times) {
    total += times.total;
    data += times.data;
    forward_backward += times.forward_backward;
    communicate += times.communicate;
    update += times.update;
  }
};
// Means over the steps since the last step event.
struct EventTimes {
  StepTimes per_step;
  double samples_per_second = 0;
};
// What f16 keeps of a value, or of several together, as it was computed.
struct ExponentFacts {
  ExponentHistogram histogram;
  std::string held_in;  // "f16"; empty: several dtypes
  // Of what has the loss scale in it: which, and those that would do.
  std::optional<float> loss_scaling;
  ScaleRange scales;
};
// A value asked for with --fetch: its elements, or a summary of them. A
// histogram is min, max, how many are not finite, then the bins' counts.
struct FetchedValue {
  std::string name;
  std::vector<float> values;
  bool histogram = false;
  std::optional<ExponentFacts> exponents;  // instead of `values`
};
// One part of a loss that adds up several: its mean, and the scale that it has
// where each has a scaler.
struct PartLoss {
  std::string name;
  double loss = 0;
  std::optional<float> loss_scaling;
};
// The state after step `step` and what was seen since the last event.
struct StepEvent {
  int64_t step = 0;     // attempted steps so far
  int64_t applied = 0;  // of them applied
  int64_t epoch = 0;    // 1, 2, ...
  // Mean over the `n` samples of all steps since the last event whose loss is
  // finite; NaN if there is none. Of these steps, how many were not applied,
  // and how many others the mean leaves out.
  float loss = 0;
  int64_t n = 0, skipped = 0, not_finite = 0;
  float lr = 0;
  float loss_scaling = 1;
  int64_t good_steps = 0, bad_steps = 0;
  bool found_inf = false;  // of this step
  float grad_norm = 0;
  EventTimes times;
  std::vector<FetchedValue> fetches;
  // Of all fetched exponents that have the loss scale, if there are several.
  std::optional<ExponentFacts> exponents;
  std::vector<PartLoss> parts;  // of this step
};
// What a step event would say now, after a step that has none.
struct ProgressEvent {
  StepEvent state;
};
struct SkipEvent {
  int64_t step = 0, epoch = 0;
  std::string first_bad;  // "conv2.w.grad has inf"
  int64_t bad_steps = 0;
  // Of this part of the loss, where parts have scalers.
  std::string part;
  float scale_before = 1, loss_scaling = 1;
};
// A step that was skipped, or after which the loss scale is another one.
struct ScaleEvent {
  int64_t step = 0, epoch = 0;
  bool skipped = false;
  std::string first_bad;  // of a skipped step: "conv2.w.grad has inf"
  float scale_before = 1, loss_scaling = 1;
  std::string part;  // as SkipEvent has it
};
// A loss that is not finite in a step that was applied, since its gradients
// are.
struct NotFiniteEvent {
  int64_t step = 0, epoch = 0;
  float loss = 0;
  bool applied = true;
  int64_t in_a_row = 0;
};
struct MetricValue {
  std::string name;
  double value = 0;
  int64_t correct = 0, total = 0;
};
struct EvalEvent {
  int64_t step = 0, epoch = 0;
  double loss = 0;
  std::vector<MetricValue> metrics;  // by name
  std::vector<PartLoss> parts;
};
struct CheckpointEvent {
  int64_t step = 0, epoch = 0;
};
// A launcher has started the ranks again after one had failed.
struct RestartEvent {
  int64_t step = 0;     // that it goes on from
  int64_t attempt = 1;  // 1, 2, ...
  // Who failed: -1 is a rank of another node, and a step before the first.
  int64_t rank = -1, failed_step = -1;
  std::string cause;
};
struct WarningEvent {
  std::string text;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_STEP_EVENTS_H_

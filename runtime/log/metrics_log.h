// metrics.jsonl: one JSON object per line, written as the run goes. f32 values
// in digits that read back to the same bits; nan, inf, -inf as strings.
#ifndef HALFTONE_RUNTIME_LOG_METRICS_LOG_H_
#define HALFTONE_RUNTIME_LOG_METRICS_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

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
  // Milliseconds per step since the last event, in this order.
  std::vector<std::pair<std::string, double>> ms;
  // Values asked for with --fetch: name, then a number or an array.
  std::vector<std::pair<std::string, std::vector<float>>> fetches;
};
struct SkipEvent {
  int64_t step = 0, epoch = 0;
  std::string first_bad;  // "conv2.w.grad has inf"
  int64_t bad_steps = 0;
  float loss_scaling = 1;
};
// A loss that is not finite in a step that was applied, since its gradients
// are.
struct NotFiniteEvent {
  int64_t step = 0, epoch = 0;
  float loss = 0;
  bool applied = true;
  int64_t in_a_row = 0;
};
struct EvalEvent {
  int64_t step = 0, epoch = 0;
  float loss = 0;
  struct Metric {
    std::string name;
    double value = 0;
    int64_t correct = 0, total = 0;
  };
  std::vector<Metric> metrics;
};

class MetricsLog {
 public:
  // `keep_until` < 0: a new file. Otherwise lines of steps after it are cut
  // off (resume), so is all that is no event, and more are appended. A link is
  // not followed. Errors: kModel (cannot be written).
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(
      const std::string& path, int64_t keep_until);
  ~MetricsLog();
  absl::Status Write(const StepEvent& event);
  absl::Status Write(const SkipEvent& event);
  absl::Status Write(const NotFiniteEvent& event);
  absl::Status Write(const EvalEvent& event);
  // What could not be written (a full disk) is kept, up to 16 MiB, and written
  // before the next line: the file never has half a line in it, and a gap only
  // beyond that.
  absl::Status Flush();

 private:
  MetricsLog(std::string path, int fd);
  absl::Status Append(const std::string& line);

  std::string path_, pending_;
  int fd_;
};

// The shortest decimal that reads back to the same f32; a quoted string for
// nan, inf, -inf.
std::string JsonNumber(float value);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_METRICS_LOG_H_

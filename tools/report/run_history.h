// What a run directory tells of a run, however long it was.
#ifndef HALFTONE_TOOLS_REPORT_RUN_HISTORY_H_
#define HALFTONE_TOOLS_REPORT_RUN_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace tools {

// Values over steps in at most kMost buckets of equally many points each: as
// more come in, neighbours become one. O(kMost) memory.
class ThinnedSeries {
 public:
  static constexpr int kMost = 1024;

  struct Bucket {
    double first_step = 0, last_step = 0;
    double least = 0, most = 0, sum = 0;
    int64_t count = 0;       // of finite values
    int64_t not_finite = 0;  // likewise
    double mean() const { return count > 0 ? sum / count : 0; }
  };

  void Add(double step, double value);
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // The value that was added last where it is not finite, else its bucket's
  // mean. Of one that is not empty.
  double last() const;

 private:
  void Halve();

  int64_t per_bucket_ = 1;
  double last_value_ = 0;
  std::vector<Bucket> buckets_;
};

struct RunHistory {
  std::string directory;
  // By name, of metrics.jsonl: "loss", "ms.step", "eval loss", "eval top1".
  std::map<std::string, ThinnedSeries> series;
  // Steps that were skipped.
  ThinnedSeries skipped;
  // What f16 made 0 of a gradient that was fetched with :exponents: where f16
  // holds it, all elements that are 0.
  struct Flushed {
    double elements = 0, lost = 0;
    double share() const { return elements > 0 ? lost / elements : 0; }
  };
  // By the gradient's name, over all events.
  std::map<std::string, Flushed> flushed;
  int64_t last_step = 0;
  // Null where the run has none: it goes on, or was killed.
  nlohmann::json summary, failure;
};

// Reads metrics.jsonl line by line; a last line without an end, of a run that
// goes on or was killed, counts as not there. Errors (kModel): no run
// directory; a line or file that is no JSON, named.
absl::StatusOr<RunHistory> ReadRunHistory(const std::string& directory);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_RUN_HISTORY_H_

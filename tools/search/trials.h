// Runs of compiled models whose results stay: a search that was stopped goes on
// where it was.
#ifndef HALFTONE_TOOLS_SEARCH_TRIALS_H_
#define HALFTONE_TOOLS_SEARCH_TRIALS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/base/disk/directory.h"
#include "graph/base/disk/directory_lock.h"
#include "graph/io/compiled_model.h"

namespace halftone {
namespace tools {

// Of a run's last eval.
struct Metric {
  std::string name;  // of the model's, or "loss"
  bool lower_is_better() const { return name == "loss"; }
  // "97.5 %", "0.0312".
  std::string Text(double value) const;
};

class Trials {
 public:
  struct Settings {
    std::string directory;
    Metric metric;
    int runs = 1;                    // of each program, with seeds of their own
    std::vector<std::string> words;  // of `run`, behind the model
    std::string self;                // the binary that has `run`
    std::function<void(const std::string& line)> say;
  };

  // Takes the directory, which is made, for itself and reads what lies there.
  // `question`: all else that results depend on, by name; a directory that
  // holds results of another one is an error (kUsage) that names the difference
  // first found.
  static absl::StatusOr<Trials> Open(
      Settings settings, const std::map<std::string, std::string>& question);

  // The mean of the metric over the runs of this program: a percentage, or a
  // loss. None: a run diverged or its metric is not finite. Errors: a run that
  // ended in any other way (with its code and the log's path), no such metric
  // in its eval.
  absl::StatusOr<std::optional<double>> Measure(const CompiledModel& model,
                                                const std::string& what);

  // Programs that were measured, and runs of them: in all, and just now.
  int programs() const { return programs_; }
  int runs_made() const { return made_; }

 private:
  // What became of one run; none: it diverged.
  using Value = std::optional<double>;

  Trials(Settings settings, DirectoryLock lock, Directory directory)
      : settings_(std::move(settings)),
        lock_(std::move(lock)),
        directory_(std::move(directory)) {}
  absl::Status ReadResults();
  absl::Status Keep(const std::string& key, Value value);
  absl::StatusOr<Value> Run(const CompiledModel& model, int64_t seed);
  absl::StatusOr<Value> ValueOf(const Directory& run) const;

  Settings settings_;
  DirectoryLock lock_;
  Directory directory_;
  std::map<std::string, Value> results_;  // by program and seed
  int programs_ = 0, made_ = 0;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_TRIALS_H_

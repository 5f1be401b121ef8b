// summary.json: its fields are a promise to scripts (docs/formats.md).
#ifndef HALFTONE_RUNTIME_REPORT_SUMMARY_H_
#define HALFTONE_RUNTIME_REPORT_SUMMARY_H_

#include <functional>
#include <string>
#include <utility>

#include "runtime/report/run_observer.h"

namespace halftone {
namespace runtime {

// The content of the file.
std::string SummaryJson(const RunStarted& run, const RunEnded& end);

// Whether a run that ends keeps the summary.json of its `directory`: one that
// had ended well and was taken up again with nothing to do does, for this
// time's data and speed are not those it was trained with.
bool KeepsSummary(const RunStarted& run, const RunEnded& end, bool evaluated,
                  const std::string& directory);

class SummaryFile : public RunObserver {
 public:
  // Writes `<directory>/summary.json` when the run ends, unless it keeps what
  // is there. Where `is_ours`
  // has an error (the path names another run's), it is Flush's, and nothing is
  // written.
  explicit SummaryFile(std::string directory,
                       std::function<absl::Status()> is_ours = absl::OkStatus)
      : directory_(std::move(directory)), is_ours_(std::move(is_ours)) {}

  void On(const RunStarted& run) override { run_ = run; }
  void On(const EvalEvent&) override { evaluated_ = true; }
  void On(const RunEnded& end) override;
  absl::Status Flush() override;

 private:
  std::string directory_, content_;
  std::function<absl::Status()> is_ours_;
  RunStarted run_;
  bool evaluated_ = false;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_SUMMARY_H_

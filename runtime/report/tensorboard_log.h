// Losses, metrics, times, the loss scale, histograms and the program's graph
// for TensorBoard.
#ifndef HALFTONE_RUNTIME_REPORT_TENSORBOARD_LOG_H_
#define HALFTONE_RUNTIME_REPORT_TENSORBOARD_LOG_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/log/event_file.h"
#include "runtime/report/run_observer.h"

namespace halftone {
namespace runtime {

class TensorBoardLog : public RunObserver {
 public:
  // A new file in the directory. Errors: kModel.
  static absl::StatusOr<std::unique_ptr<TensorBoardLog>> Create(
      const std::string& directory);

  void On(const RunStarted& run) override;
  void On(const GraphEvent& graph) override;
  void On(const StepEvent& event) override;
  void On(const ScaleEvent& event) override;
  void On(const EvalEvent& event) override;
  absl::Status Flush() override { return file_->Flush(); }

 private:
  explicit TensorBoardLog(std::unique_ptr<EventFile> file)
      : file_(std::move(file)) {}

  void AddTimes(int64_t step, const EventTimes& times);
  void AddExponents(const std::string& tag, int64_t step,
                    const ExponentFacts& facts);
  void AddFetch(int64_t step, const FetchedValue& fetch);

  std::unique_ptr<EventFile> file_;
  bool parts_known_ = true;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_TENSORBOARD_LOG_H_

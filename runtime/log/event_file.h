// events.out.tfevents.*: what TensorBoard shows, in its record format (length,
// masked CRC-32C, Event message, masked CRC-32C).
#ifndef HALFTONE_RUNTIME_LOG_EVENT_FILE_H_
#define HALFTONE_RUNTIME_LOG_EVENT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// Bin i holds what is above limits[i - 1] (the first: from `min` on) up to
// limits[i].
struct EventHistogram {
  double min = 0, max = 0;
  std::vector<double> limits, counts;  // as many
};

class EventFile {
 public:
  // Makes `<directory>/events.out.tfevents.<unix seconds>.<host>`.
  static absl::StatusOr<std::unique_ptr<EventFile>> Create(
      const std::string& directory);
  ~EventFile();
  // Buffered, up to 16 MiB; Flush writes, and keeps what cannot be written.
  void AddScalar(absl::string_view tag, int64_t step, float value);
  void AddHistogram(absl::string_view tag, int64_t step,
                    const EventHistogram& histogram);
  // A GraphDef: runtime/log/graph_def.h.
  void AddGraph(absl::string_view graph_def);
  // Of a run that goes on: what earlier files of the directory have of this
  // step and of later ones counts no more.
  void AddRestart(int64_t step);
  void AddText(absl::string_view tag, int64_t step, absl::string_view text);
  absl::Status Flush();

 private:
  EventFile(std::string path, int fd);
  // A Summary.Value.
  void Add(int64_t step, absl::string_view value);

  std::string path_, buffer_;
  int fd_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_EVENT_FILE_H_

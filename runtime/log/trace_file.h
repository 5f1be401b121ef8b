// Traces for Perfetto (ui.perfetto.dev) and chrome://tracing: what ran when.
#ifndef HALFTONE_RUNTIME_LOG_TRACE_FILE_H_
#define HALFTONE_RUNTIME_LOG_TRACE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace halftone {
namespace runtime {

struct TraceEvent {
  std::string name, category;
  std::string track;  // events of one track lie on one line, or nest
  double begin_ms = 0, ms = 0;
};

// In the JSON form of the Trace Event Format, a process per rank.
std::string TraceJson(const std::vector<TraceEvent>& events, int rank);

// Errors: kModel, it cannot be written.
absl::Status WriteTrace(const std::string& path,
                        const std::vector<TraceEvent>& events, int rank);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_TRACE_FILE_H_

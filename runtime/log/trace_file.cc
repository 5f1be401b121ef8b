#include "runtime/log/trace_file.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/output_file.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {

std::string TraceJson(const std::vector<TraceEvent>& events, int rank) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  list.push_back({{"name", "process_name"},
                  {"ph", "M"},
                  {"pid", rank},
                  {"args", {{"name", absl::StrCat("rank ", rank)}}}});
  std::vector<std::string> tracks;
  for (const TraceEvent& event : events) {
    auto track = std::find(tracks.begin(), tracks.end(), event.track);
    if (track == tracks.end()) {
      track = tracks.insert(tracks.end(), event.track);
      list.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", rank},
                      {"tid", track - tracks.begin()},
                      {"args", {{"name", event.track}}}});
    }
    // Microseconds, in a complete event.
    list.push_back({{"name", event.name},
                    {"cat", event.category},
                    {"ph", "X"},
                    {"ts", 1000 * event.begin_ms},
                    {"dur", 1000 * event.ms},
                    {"pid", rank},
                    {"tid", track - tracks.begin()}});
  }
  const Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", list}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status WriteTrace(const std::string& path,
                        const std::vector<TraceEvent>& events, int rank) {
  return WriteOutput(path, TraceJson(events, rank));
}

}  // namespace runtime
}  // namespace halftone

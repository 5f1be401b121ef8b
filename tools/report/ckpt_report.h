// What `halftone ckpt` says.
#ifndef HALFTONE_TOOLS_REPORT_CKPT_REPORT_H_
#define HALFTONE_TOOLS_REPORT_CKPT_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/checkpoint/checkpoint.h"

namespace halftone {
namespace tools {

struct CheckpointRow {
  std::string path;
  absl::Status status;  // why it cannot be read; then the rest is empty
  runtime::Manifest manifest;
  size_t tensors = 0;
  int64_t bytes = 0;
  bool best = false;  // of the evals that the newest sound one knows
};
// Reads every byte of each; from the oldest to the newest.
std::vector<CheckpointRow> ReadCheckpoints(
    const std::vector<std::string>& paths);
// A line, or an object, for each.
std::string CheckpointsText(const std::vector<CheckpointRow>& rows);
std::string CheckpointsJson(const std::vector<CheckpointRow>& rows);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_CKPT_REPORT_H_

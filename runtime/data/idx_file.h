// MNIST's IDX format, plain or gzip.
#ifndef HALFTONE_RUNTIME_DATA_IDX_FILE_H_
#define HALFTONE_RUNTIME_DATA_IDX_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// An array of unsigned bytes.
struct IdxArray {
  std::string file;           // as read, for messages
  std::vector<int64_t> dims;  // the first one counts samples
  std::string bytes;
};

// Reads `path` or, if there is none, `path` + ".gz". At most 2 GiB, of which no
// more is unpacked than the header claims, and that is at most `max_unpack`
// times the packed file (or 16 MiB).
// Errors (kModel): missing, empty, truncated, wrong magic, other dtypes, more
// or fewer bytes than the header says.
absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int64_t max_unpack);
absl::StatusOr<IdxArray> ParseIdx(absl::string_view content,
                                  absl::string_view file);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IDX_FILE_H_

// Whole files and atomic writes, with errors that name the path and the cause.
#ifndef HALFTONE_GRAPH_BASE_FILE_H_
#define HALFTONE_GRAPH_BASE_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {

// "a directory", "a pipe", "a socket", "a device": what is no regular file, by
// its st_mode.
const char* KindOfFile(mode_t mode);

// Reads a regular file; refuses one over `max_bytes` (class kModel).
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes = int64_t{1} << 31);

// Writes beside `path`, fsyncs and renames, so that a reader sees the old or
// the new content, never a part of it.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content);

// mkdir -p.
absl::Status MakeDirectories(const std::string& path);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_FILE_H_

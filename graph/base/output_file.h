// Files that a user named.
#ifndef HALFTONE_GRAPH_BASE_OUTPUT_FILE_H_
#define HALFTONE_GRAPH_BASE_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {

// WriteFileAtomically for what -o names: links are followed, a file that is
// there keeps its mode, and what is no plain file (a device, a pipe,
// /dev/stdout, /dev/fd/N) is written to as it is; - is stdout. Reports that
// follow it there go to stderr (display.h).
absl::Status WriteOutput(const std::string& path, absl::string_view content);
// The same for parts, one after the other: what is large need not be copied.
absl::Status WriteOutput(const std::string& path,
                         absl::Span<const absl::string_view> parts);

// Whether WriteOutput could write there as things are, for what takes long to
// make; its error if not. Nothing stays behind, and nothing there is touched.
absl::Status CheckOutput(const std::string& path);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_OUTPUT_FILE_H_

// Whether a file has no more records than its size lets one expect. A message
// takes a hundred bytes of memory even where it takes two of the file: without
// a limit 10 MB could claim a gigabyte.
#ifndef HALFTONE_GRAPH_IO_RECORD_LIMITS_H_
#define HALFTONE_GRAPH_IO_RECORD_LIMITS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace halftone {

// Of a binary message of this type; what is no such message passes here and is
// refused by the parser. The shortest record that says something, a slot with
// a name of one letter and a value with one, takes 8 bytes; 5 a record are
// demanded. Reads, keeps nothing.
absl::Status CheckBinaryRecords(absl::string_view content,
                                absl::string_view file,
                                const google::protobuf::Descriptor& type);
// Of a text message: by its opening braces outside of quotes and comments.
absl::Status CheckTextRecords(absl::string_view content,
                              absl::string_view file);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_RECORD_LIMITS_H_

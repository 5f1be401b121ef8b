// Whether a file has no more records than its size lets one expect. A message
// takes a hundred bytes of memory even where it takes two of the file: without
// a limit 10 MB could claim a gigabyte.
#ifndef HALFTONE_GRAPH_IO_RECORD_LIMITS_H_
#define HALFTONE_GRAPH_IO_RECORD_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace halftone {

// Of a binary message of this type; what is no such message passes here and is
// refused by the parser. The shortest record that says something, a slot with
// a name of one letter and a value with one, takes 8 bytes; 5 a record are
// demanded. Reads, keeps nothing.
absl::Status CheckBinaryRecords(absl::string_view content,
                                absl::string_view file,
                                const google::protobuf::Descriptor& type);
// Reads a binary message of at most 2 GiB. Errors: that of CheckBinaryRecords;
// more than 100 messages inside of each other. `*parsed`: whether it is such a
// message, whole.
absl::Status ParseBinaryRecords(absl::string_view content,
                                absl::string_view file,
                                google::protobuf::Message* message,
                                bool* parsed);

// Of a text message: its opening braces outside of quotes and comments, and how
// deep it nests messages and lists.
struct TextShape {
  int64_t records = 0;
  int depth = 0;
};
TextShape ShapeOfText(absl::string_view text);
absl::Status CheckTextRecords(absl::string_view content, absl::string_view file,
                              const TextShape& shape);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_RECORD_LIMITS_H_

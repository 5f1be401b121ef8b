// Text-format messages that need none of the format's rarer parts, read in a
// fifth of the time that protobuf's parser takes: a model of a program's size
// is all of this kind.
#ifndef HALFTONE_GRAPH_IO_PLAIN_TEXT_H_
#define HALFTONE_GRAPH_IO_PLAIN_TEXT_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace halftone {

// A message of this type in protobuf's binary form. Null if the text is not
// plain or not sound: protobuf's parser then reads it, or says what is wrong.
// Plain is printable ASCII outside of comments, strings without backslashes
// that are not joined to a next one, decimal numbers of at most 15 digits,
// lists of scalars. What is returned parses to what protobuf's parser makes of
// the text.
std::optional<std::string> BinaryOfPlainText(
    absl::string_view text, const google::protobuf::Descriptor& type);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_PLAIN_TEXT_H_

// Where the fields of a text-format protobuf are in its file.
#ifndef HALFTONE_GRAPH_IO_TEXT_PROTO_H_
#define HALFTONE_GRAPH_IO_TEXT_PROTO_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace halftone {

// As that of model_reader.h, and fills `places`, unless it is null.
absl::Status ParseTextProto(
    absl::string_view content, absl::string_view file,
    google::protobuf::Message* message,
    google::protobuf::TextFormat::ParseInfoTree* places);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_TEXT_PROTO_H_

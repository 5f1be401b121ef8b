// The large parts of a compiled model, deflated: names and types come again
// and again in them.
#ifndef HALFTONE_GRAPH_IO_PACKED_PARTS_H_
#define HALFTONE_GRAPH_IO_PACKED_PARTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/compiled_model.pb.h"

namespace halftone {

// The same bytes for the same message, always.
std::string ToBytes(const google::protobuf::Message& message);

// The bytes of the message's largest fields.
struct Parts {
  absl::string_view program, source, report;
};

// Puts the parts into their packed fields. Errors (kModel): a part above 2 GiB,
// which no message can hold.
absl::Status PackParts(const Parts& parts, proto::CompiledModel* message);

// And back; what is not packed stays as it is (version 1). Errors (kModel): a
// part that is damaged, or that claims to be larger than so few bytes can be.
absl::Status UnpackParts(proto::CompiledModel* message);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_PACKED_PARTS_H_

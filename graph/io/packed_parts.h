// The large parts of a compiled model, deflated: names and types come again
// and again in them.
#ifndef HALFTONE_GRAPH_IO_PACKED_PARTS_H_
#define HALFTONE_GRAPH_IO_PACKED_PARTS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/compiled_model.pb.h"

namespace halftone {

// The same bytes for the same message, always.
std::string ToBytes(const google::protobuf::Message& message);

// Deflates what is appended, a piece of a megabyte at a time, so that a large
// part is nowhere whole: a zlib stream for each piece.
class Packer {
 public:
  Packer();
  ~Packer();
  void Append(absl::string_view bytes);
  // Its ToBytes.
  void Append(const google::protobuf::Message& message);
  // Of all that was appended; once.
  proto::Packed Finish();

 private:
  struct Compressor;
  // Of `piece_`, which is then empty.
  void Deflate(int level);

  std::unique_ptr<Compressor> compressor_;
  std::string piece_;
  proto::Packed packed_;
};

// Errors (kModel): bytes that are damaged, or that claim to be more than so few
// can be.
absl::StatusOr<std::string> Unpack(const proto::Packed& packed);

// Puts the packed program, source and report of a compiled model into their
// fields, where what is not packed is already (format 2). Errors (kModel):
// those of Unpack, or a part that is none of its kind.
absl::Status UnpackParts(proto::CompiledModel* message);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_PACKED_PARTS_H_

// The rows of a report's ops.
#ifndef HALFTONE_GRAPH_IO_OP_ROWS_H_
#define HALFTONE_GRAPH_IO_OP_ROWS_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/io/packed_parts.h"
#include "proto/compiled_model.pb.h"

namespace halftone {

// Packed: as messages the rows of a large model would take more memory than
// its program. Not for several threads at once.
class OpRows {
 public:
  OpRows() = default;
  // Field `op` of a serialized proto::CompileReport, packed. Errors (kModel):
  // those of Unpack, or bytes that are none.
  static absl::StatusOr<OpRows> Of(proto::Packed packed);

  // In order; a row is gone after its call.
  void ForEach(absl::FunctionRef<void(const proto::OpRow&)> visit) const;
  // All of them as messages, made at the first call.
  const google::protobuf::RepeatedPtrField<proto::OpRow>& all() const;
  int size() const { return size_; }
  const proto::Packed& packed() const { return packed_; }

 private:
  friend class OpRowWriter;
  proto::Packed packed_;
  int size_ = 0;
  mutable std::unique_ptr<proto::CompileReport> messages_;
};

class OpRowWriter {
 public:
  void Add(const proto::OpRow& row);
  // Those added; once.
  OpRows Finish();

 private:
  Packer packer_;
  std::string bytes_;  // of one row
  int size_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_OP_ROWS_H_

// The rows of a report's ops and casts.
#ifndef HALFTONE_GRAPH_IO_REPORT_ROWS_H_
#define HALFTONE_GRAPH_IO_REPORT_ROWS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/io/packed_parts.h"
#include "proto/compiled_model.pb.h"

namespace halftone {

struct OpHead;
template <typename Row>
class ReportRowWriter;

// As bytes: as messages the rows of a large model would take more memory than
// its program. Not for several threads at once.
template <typename Row>
class ReportRows {
 public:
  ReportRows() = default;
  // Their field of a serialized proto::CompileReport, packed. Errors (kModel):
  // those of Unpack, or bytes that are none.
  static absl::StatusOr<ReportRows> Of(proto::Packed packed);
  // Those of a report that was read: they stay messages. It has none after it.
  static ReportRows TakeFrom(proto::CompileReport* report);

  // In order; a row is gone after its call.
  void ForEach(absl::FunctionRef<void(const Row&)> visit) const;
  // All of them as messages, made at the first call.
  const google::protobuf::RepeatedPtrField<Row>& all() const;
  int size() const { return size_; }
  // As the field that they are.
  void AppendTo(Packer* packer) const;

 private:
  friend void ForEachHead(const ReportRows<proto::OpRow>& rows,
                          absl::FunctionRef<void(const OpHead&)> visit);
  friend class ReportRowWriter<Row>;
  std::vector<std::string> pieces_;  // of whole rows
  int size_ = 0;
  mutable std::unique_ptr<proto::CompileReport> messages_;
};

template <typename Row>
class ReportRowWriter {
 public:
  void Add(const Row& row);
  // Those added; once.
  ReportRows<Row> Finish();

 private:
  ReportRows<Row> rows_;
};

using OpRows = ReportRows<proto::OpRow>;

// What counts ops need of a row; good during the call.
struct OpHead {
  absl::string_view name, role, precision, reason;
};
// Without making messages of the rows: most of a row is its inputs and outputs.
void ForEachHead(const OpRows& rows,
                 absl::FunctionRef<void(const OpHead&)> visit);

using OpRowWriter = ReportRowWriter<proto::OpRow>;
using CastRows = ReportRows<proto::CastRow>;
using CastRowWriter = ReportRowWriter<proto::CastRow>;

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_REPORT_ROWS_H_

#include "graph/io/report_rows.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/io/record_limits.h"

namespace halftone {
namespace {

using google::protobuf::RepeatedPtrField;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr size_t kReadPiece = size_t{1} << 16;

// The field of a report that has the rows.
template <typename Row>
struct Field;
template <>
struct Field<proto::OpRow> {
  static constexpr int kNumber = proto::CompileReport::kOpFieldNumber;
  static RepeatedPtrField<proto::OpRow>* Of(proto::CompileReport* report) {
    return report->mutable_op();
  }
};
template <>
struct Field<proto::CastRow> {
  static constexpr int kNumber = proto::CompileReport::kCastFieldNumber;
  static RepeatedPtrField<proto::CastRow>* Of(proto::CompileReport* report) {
    return report->mutable_cast();
  }
};

template <typename Row>
constexpr uint32_t Tag() {
  constexpr uint32_t kTag = WireFormatLite::MakeTag(
      Field<Row>::kNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  static_assert(kTag < 0x80, "the tag is one byte");
  return kTag;
}

// Calls `read` between each row's limits. False: there is something else than
// rows, or `read` says so.
template <typename Row, typename Read>
bool ReadRows(absl::string_view bytes, const Read& read) {
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
  while (stream.ReadTag() == Tag<Row>()) {
    uint32_t size = 0;
    if (!stream.ReadVarint32(&size) || size > bytes.size()) return false;
    const auto limit = stream.PushLimit(static_cast<int>(size));
    if (!read(stream) || stream.BytesUntilLimit() > 0) return false;
    stream.PopLimit(limit);
  }
  return stream.CurrentPosition() == static_cast<int>(bytes.size());
}

template <typename Row, typename Visit>
bool VisitRows(absl::string_view bytes, const Visit& visit) {
  Row row;  // kept, with the memory of its strings
  return ReadRows<Row>(bytes, [&](CodedInputStream& stream) {
    row.Clear();
    if (!row.MergeFromCodedStream(&stream)) return false;
    if (stream.BytesUntilLimit() > 0) return false;
    visit(row);
    return true;
  });
}

// Of the row that lies between the stream's place and its limit; false: it is
// none.
bool ReadHead(absl::string_view bytes, CodedInputStream& stream, OpHead* head) {
  while (const uint32_t tag = stream.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) !=
        WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&stream, tag)) return false;
      continue;
    }
    uint32_t size = 0;
    if (!stream.ReadVarint32(&size) || size > bytes.size()) return false;
    const absl::string_view text = bytes.substr(stream.CurrentPosition(), size);
    if (!stream.Skip(static_cast<int>(size))) return false;
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case proto::OpRow::kNameFieldNumber:
        head->name = text;
        break;
      case proto::OpRow::kRoleFieldNumber:
        head->role = text;
        break;
      case proto::OpRow::kPrecisionFieldNumber:
        head->precision = text;
        break;
      case proto::OpRow::kReasonFieldNumber:
        head->reason = text;
        break;
    }
  }
  return stream.BytesUntilLimit() == 0;
}

bool VisitHeads(absl::string_view bytes,
                absl::FunctionRef<void(const OpHead&)> visit) {
  return ReadRows<proto::OpRow>(bytes, [&](CodedInputStream& stream) {
    OpHead head;
    if (!ReadHead(bytes, stream, &head)) return false;
    visit(head);
    return true;
  });
}

}  // namespace

template <typename Row>
absl::StatusOr<ReportRows<Row>> ReportRows<Row>::Of(proto::Packed packed) {
  ReportRows rows;
  HT_ASSIGN_OR_RETURN(std::string bytes, Unpack(packed));
  HT_RETURN_IF_ERROR(
      CheckBinaryRecords(bytes, "a part", *proto::CompileReport::descriptor()));
  if (!VisitRows<Row>(bytes, [&rows](const Row&) { ++rows.size_; })) {
    return ModelError("a part is none of its kind");
  }
  rows.pieces_.push_back(std::move(bytes));
  return rows;
}

template <typename Row>
ReportRows<Row> ReportRows<Row>::TakeFrom(proto::CompileReport* report) {
  ReportRows rows;
  rows.messages_.reset(new proto::CompileReport);
  Field<Row>::Of(rows.messages_.get())->Swap(Field<Row>::Of(report));
  rows.size_ = rows.all().size();
  return rows;
}

template <typename Row>
void ReportRows<Row>::ForEach(absl::FunctionRef<void(const Row&)> visit) const {
  if (messages_ != nullptr) {
    for (const Row& row : all()) visit(row);
    return;
  }
  for (const std::string& piece : pieces_) {
    HT_CHECK(VisitRows<Row>(piece, visit), "rows of a report are whole");
  }
}

template <typename Row>
const RepeatedPtrField<Row>& ReportRows<Row>::all() const {
  if (messages_ == nullptr) {
    auto messages = std::make_unique<proto::CompileReport>();
    ForEach([&messages](const Row& row) {
      *Field<Row>::Of(messages.get())->Add() = row;
    });
    messages_ = std::move(messages);
  }
  return *Field<Row>::Of(messages_.get());
}

template <typename Row>
void ReportRows<Row>::AppendTo(Packer* packer) const {
  if (messages_ != nullptr) {
    packer->Append(*messages_);
  } else {
    for (const std::string& piece : pieces_) packer->Append(piece);
  }
}

template <typename Row>
void ReportRowWriter<Row>::Add(const Row& row) {
  const size_t size = row.ByteSizeLong();
  const size_t bytes = 1 + CodedOutputStream::VarintSize64(size) + size;
  std::vector<std::string>& pieces = rows_.pieces_;
  if (pieces.empty() ||
      pieces.back().size() + bytes > pieces.back().capacity()) {
    pieces.emplace_back().reserve(std::max(kReadPiece, bytes));
  }
  std::string& piece = pieces.back();
  const size_t begin = piece.size();
  piece.resize(begin + bytes);
  uint8_t* at = reinterpret_cast<uint8_t*>(&piece[begin]);
  *at++ = static_cast<uint8_t>(Tag<Row>());
  at = CodedOutputStream::WriteVarint64ToArray(size, at);
  row.SerializeWithCachedSizesToArray(at);
  ++rows_.size_;
}

template <typename Row>
ReportRows<Row> ReportRowWriter<Row>::Finish() {
  return std::move(rows_);
}

void ForEachHead(const OpRows& rows,
                 absl::FunctionRef<void(const OpHead&)> visit) {
  if (rows.messages_ != nullptr) {
    for (const proto::OpRow& row : rows.all()) {
      visit({row.name(), row.role(), row.precision(), row.reason()});
    }
    return;
  }
  for (const std::string& piece : rows.pieces_) {
    HT_CHECK(VisitHeads(piece, visit), "rows of a report are whole");
  }
}

template class ReportRows<proto::OpRow>;
template class ReportRowWriter<proto::OpRow>;
template class ReportRows<proto::CastRow>;
template class ReportRowWriter<proto::CastRow>;

}  // namespace halftone

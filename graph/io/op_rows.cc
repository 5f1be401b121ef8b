#include "graph/io/op_rows.h"

#include <cstdint>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/io/record_limits.h"

namespace halftone {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kOpTag =
    WireFormatLite::MakeTag(proto::CompileReport::kOpFieldNumber,
                            WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
static_assert(kOpTag < 0x80, "the tag is one byte");

// False: there is something else than rows.
template <typename Visit>
bool VisitRows(absl::string_view bytes, const Visit& visit) {
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
  proto::OpRow row;  // kept, with the memory of its strings
  while (stream.ReadTag() == kOpTag) {
    uint32_t size = 0;
    if (!stream.ReadVarint32(&size) || size > bytes.size()) return false;
    const auto limit = stream.PushLimit(static_cast<int>(size));
    row.Clear();
    if (!row.MergeFromCodedStream(&stream) || stream.BytesUntilLimit() > 0) {
      return false;
    }
    stream.PopLimit(limit);
    visit(row);
  }
  return stream.CurrentPosition() == static_cast<int>(bytes.size());
}

// Those that were packed here, or were checked when they were read.
std::string Unpacked(const proto::Packed& packed) {
  absl::StatusOr<std::string> bytes = Unpack(packed);
  HT_CHECK(bytes.ok(), "rows of ops can be unpacked");
  return *std::move(bytes);
}

}  // namespace

absl::StatusOr<OpRows> OpRows::Of(proto::Packed packed) {
  OpRows rows;
  HT_ASSIGN_OR_RETURN(const std::string bytes, Unpack(packed));
  HT_RETURN_IF_ERROR(
      CheckBinaryRecords(bytes, "a part", *proto::CompileReport::descriptor()));
  if (!VisitRows(bytes, [&rows](const proto::OpRow&) { ++rows.size_; })) {
    return ModelError("a part is none of its kind");
  }
  rows.packed_ = std::move(packed);
  return rows;
}

void OpRows::ForEach(absl::FunctionRef<void(const proto::OpRow&)> visit) const {
  HT_CHECK(VisitRows(Unpacked(packed_), visit), "rows of ops are whole");
}

const google::protobuf::RepeatedPtrField<proto::OpRow>& OpRows::all() const {
  if (messages_ == nullptr) {
    messages_.reset(new proto::CompileReport);
    HT_CHECK(messages_->ParseFromString(Unpacked(packed_)),
             "rows of ops are messages");
  }
  return messages_->op();
}

void OpRowWriter::Add(const proto::OpRow& row) {
  const size_t size = row.ByteSizeLong();
  bytes_.resize(1 + CodedOutputStream::VarintSize64(size) + size);
  uint8_t* at = reinterpret_cast<uint8_t*>(&bytes_[0]);
  *at++ = static_cast<uint8_t>(kOpTag);
  at = CodedOutputStream::WriteVarint64ToArray(size, at);
  row.SerializeWithCachedSizesToArray(at);
  packer_.Append(bytes_);
  ++size_;
}

OpRows OpRowWriter::Finish() {
  OpRows rows;
  rows.packed_ = packer_.Finish();
  rows.size_ = size_;
  return rows;
}

}  // namespace halftone

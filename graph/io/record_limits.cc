#include "graph/io/record_limits.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "graph/base/error.h"

namespace halftone {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int64_t kBytesPerRecord = 5;
// Small files are taken whatever is in them.
constexpr int64_t kAlwaysAllowed = 1000;
constexpr int kMaxRecordDepth = 100;  // protobuf's own

int64_t MostRecords(int64_t bytes) {
  return kAlwaysAllowed + bytes / kBytesPerRecord;
}

absl::Status TooMany(absl::string_view file, int64_t bytes) {
  return ModelError(file, ": expected at most one record for ", kBytesPerRecord,
                    " bytes, found more in its ", bytes,
                    " bytes: most of them say nothing; write it again");
}

class Counter {
 public:
  Counter(absl::string_view content)
      : most_(MostRecords(static_cast<int64_t>(content.size()))),
        stream_(reinterpret_cast<const uint8_t*>(content.data()),
                static_cast<int>(content.size())) {
    stream_.SetTotalBytesLimit(std::numeric_limits<int>::max());
  }

  // False: there are too many. A field that cannot be read ends the count.
  bool Message(const Descriptor* type, int depth) {
    while (const uint32_t tag = stream_.ReadTag()) {
      const FieldDescriptor* field =
          type == nullptr
              ? nullptr
              : type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const auto wire = WireFormatLite::GetTagWireType(tag);
      if (wire == WireFormatLite::WIRETYPE_START_GROUP && ++found_ > most_) {
        return false;
      }
      const bool message = field != nullptr &&
                           field->message_type() != nullptr &&
                           wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (!message) {
        if (!Skip(tag)) return found_ <= most_;
        continue;
      }
      if (++found_ > most_) return false;
      uint32_t length = 0;
      too_deep_ = too_deep_ || depth == kMaxRecordDepth;
      if (too_deep_ || !stream_.ReadVarint32(&length) ||
          length > static_cast<uint32_t>(std::numeric_limits<int>::max())) {
        return true;
      }
      const auto limit = stream_.PushLimit(static_cast<int>(length));
      const bool fits = Message(field->message_type(), depth + 1);
      if (!fits) return false;
      if (stream_.BytesUntilLimit() > 0) return true;  // could not be read
      stream_.PopLimit(limit);
    }
    return true;
  }
  // Whether the count ended at records that lie in too many others.
  bool too_deep() const { return too_deep_; }

 private:
  // Not WireFormatLite::SkipField, which goes down into groups without a count.
  bool Skip(uint32_t tag) {
    uint64_t varint;
    uint32_t word;
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_VARINT:
        return stream_.ReadVarint64(&varint);
      case WireFormatLite::WIRETYPE_FIXED64:
        return stream_.Skip(8);
      case WireFormatLite::WIRETYPE_FIXED32:
        return stream_.Skip(4);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return stream_.ReadVarint32(&word) &&
               stream_.Skip(static_cast<int>(word & 0x7fffffff));
      case WireFormatLite::WIRETYPE_START_GROUP:
      case WireFormatLite::WIRETYPE_END_GROUP:
        return true;  // its fields follow
    }
    return false;
  }

  const int64_t most_;
  int64_t found_ = 0;
  bool too_deep_ = false;
  CodedInputStream stream_;
};

}  // namespace

absl::Status CheckBinaryRecords(absl::string_view content,
                                absl::string_view file,
                                const Descriptor& type) {
  if (Counter(content).Message(&type, 0)) return absl::OkStatus();
  return TooMany(file, static_cast<int64_t>(content.size()));
}

absl::Status ParseBinaryRecords(absl::string_view content,
                                absl::string_view file,
                                google::protobuf::Message* message,
                                bool* parsed) {
  Counter counter(content);
  if (!counter.Message(message->GetDescriptor(), 0)) {
    return TooMany(file, static_cast<int64_t>(content.size()));
  }
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(content.data()),
                          static_cast<int>(content.size()));
  stream.SetTotalBytesLimit(static_cast<int>(content.size()));
  stream.SetRecursionLimit(kMaxRecordDepth);
  *parsed = message->ParsePartialFromCodedStream(&stream) &&
            stream.ConsumedEntireMessage();
  if (*parsed || !counter.too_deep()) return absl::OkStatus();
  return ModelError(file, ": expected at most ", kMaxRecordDepth,
                    " records inside of each other, found more; write it with "
                    "fewer graphs inside of graphs");
}

TextShape ShapeOfText(absl::string_view text) {
  TextShape shape;
  int depth = 0;
  char quote = 0;  // of the string that is open
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') {
        ++i;
      } else if (c == quote || c == '\n') {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      i = text.find('\n', i);
      if (i == absl::string_view::npos) break;
    } else if (c == '{' || c == '<' || c == '[') {
      shape.records += c != '[';
      shape.depth = std::max(shape.depth, ++depth);
    } else if (c == '}' || c == '>' || c == ']') {
      depth = std::max(0, depth - 1);
    }
  }
  return shape;
}

absl::Status CheckTextRecords(absl::string_view content, absl::string_view file,
                              const TextShape& shape) {
  const auto bytes = static_cast<int64_t>(content.size());
  if (shape.records <= MostRecords(bytes)) return absl::OkStatus();
  return TooMany(file, bytes);
}

}  // namespace halftone

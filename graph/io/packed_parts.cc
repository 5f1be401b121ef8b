#include "graph/io/packed_parts.h"

#include <zlib.h>

#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/io/record_limits.h"

namespace halftone {
namespace {

constexpr uint64_t kMostBytes = std::numeric_limits<int32_t>::max();
// What deflates better stays as it is, so that no file can claim more.
constexpr uint64_t kMostRatio = 50;
// Of larger parts the time counts for more than a tenth of their bytes.
constexpr size_t kLarge = size_t{1} << 20;

// False if it is not worth it.
bool Pack(const std::string& bytes, proto::Packed* packed) {
  uLongf size = compressBound(bytes.size());
  std::string deflated(size, '\0');
  const int level = bytes.size() > kLarge ? 1 : 6;
  const int result = compress2(reinterpret_cast<Bytef*>(&deflated[0]), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()),
                               bytes.size(), level);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  HT_CHECK(result == Z_OK, "zlib has the room that it asked for");
  if (size >= bytes.size() || bytes.size() / size >= kMostRatio) return false;
  deflated.resize(size);
  packed->set_bytes(bytes.size());
  packed->set_deflated(std::move(deflated));
  return true;
}

absl::StatusOr<std::string> Unpack(const proto::Packed& packed) {
  const std::string& deflated = packed.deflated();
  if (packed.bytes() > kMostBytes ||
      packed.bytes() / kMostRatio >= deflated.size()) {
    return ModelError("a part claims ", WithCommas(packed.bytes()),
                      " bytes, packed in ", WithCommas(deflated.size()));
  }
  std::string bytes(packed.bytes(), '\0');
  uLongf size = bytes.size();
  const int result = uncompress(reinterpret_cast<Bytef*>(&bytes[0]), &size,
                                reinterpret_cast<const Bytef*>(deflated.data()),
                                deflated.size());
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (result != Z_OK || size != bytes.size()) {
    return ModelError("a part cannot be unpacked");
  }
  return bytes;
}

absl::Status FromBytes(const std::string& bytes,
                       google::protobuf::Message* message) {
  bool parsed = false;
  HT_RETURN_IF_ERROR(ParseBinaryRecords(bytes, "a part", message, &parsed));
  return parsed ? absl::OkStatus() : ModelError("a part is none of its kind");
}

absl::Status CheckBytes(size_t bytes, const char* part) {
  if (bytes <= kMostBytes) return absl::OkStatus();
  return ModelError("the compiled model's ", part, " has ", WithCommas(bytes),
                    " bytes; expected at most ", WithCommas(kMostBytes),
                    "; split the model");
}

}  // namespace

std::string ToBytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

absl::Status PackParts(Parts parts, proto::CompiledModel* message) {
  HT_RETURN_IF_ERROR(CheckBytes(parts.program.size(), "program"));
  HT_RETURN_IF_ERROR(CheckBytes(parts.source.size(), "source"));
  HT_RETURN_IF_ERROR(CheckBytes(parts.report.size(), "report"));
  message->clear_program();
  message->clear_source();
  message->clear_report();
  if (!Pack(parts.program, message->mutable_packed_program())) {
    message->clear_packed_program();
    message->set_program(std::move(parts.program));
  }
  if (!Pack(parts.source, message->mutable_packed_source())) {
    message->clear_packed_source();
    HT_RETURN_IF_ERROR(FromBytes(parts.source, message->mutable_source()));
  }
  if (!Pack(parts.report, message->mutable_packed_report())) {
    message->clear_packed_report();
    HT_RETURN_IF_ERROR(FromBytes(parts.report, message->mutable_report()));
  }
  return absl::OkStatus();
}

absl::Status UnpackParts(proto::CompiledModel* message) {
  if (message->has_packed_program()) {
    HT_ASSIGN_OR_RETURN(*message->mutable_program(),
                        Unpack(message->packed_program()));
    message->clear_packed_program();
  }
  if (message->has_packed_source()) {
    HT_ASSIGN_OR_RETURN(const std::string bytes,
                        Unpack(message->packed_source()));
    HT_RETURN_IF_ERROR(FromBytes(bytes, message->mutable_source()));
    message->clear_packed_source();
  }
  if (message->has_packed_report()) {
    HT_ASSIGN_OR_RETURN(const std::string bytes,
                        Unpack(message->packed_report()));
    HT_RETURN_IF_ERROR(FromBytes(bytes, message->mutable_report()));
    message->clear_packed_report();
  }
  return absl::OkStatus();
}

}  // namespace halftone

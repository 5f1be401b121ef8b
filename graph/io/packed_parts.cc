#include "graph/io/packed_parts.h"

#include <libdeflate.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
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

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* owned) const { kFree(owned); }
};
using Compressor =
    std::unique_ptr<libdeflate_compressor,
                    Freed<libdeflate_compressor, libdeflate_free_compressor>>;
using Decompressor = std::unique_ptr<
    libdeflate_decompressor,
    Freed<libdeflate_decompressor, libdeflate_free_decompressor>>;

// False if it is not worth it.
bool Pack(absl::string_view bytes, proto::Packed* packed) {
  const Compressor compressor(
      libdeflate_alloc_compressor(bytes.size() > kLarge ? 1 : 6));
  if (compressor == nullptr) throw std::bad_alloc();
  // Without room for more than it deflates.
  std::string deflated(bytes.size(), '\0');
  const size_t size =
      libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(),
                               &deflated[0], deflated.size());
  if (size == 0 || bytes.size() / size >= kMostRatio) return false;
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
  const Decompressor decompressor(libdeflate_alloc_decompressor());
  if (decompressor == nullptr) throw std::bad_alloc();
  std::string bytes(packed.bytes(), '\0');
  // Exactly as many bytes, or it is an error.
  const libdeflate_result result = libdeflate_zlib_decompress(
      decompressor.get(), deflated.data(), deflated.size(), &bytes[0],
      bytes.size(), nullptr);
  if (result != LIBDEFLATE_SUCCESS) {
    return ModelError("a part cannot be unpacked");
  }
  return bytes;
}

absl::Status FromBytes(absl::string_view bytes,
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

absl::Status PackParts(const Parts& parts, proto::CompiledModel* message) {
  HT_RETURN_IF_ERROR(CheckBytes(parts.program.size(), "program"));
  HT_RETURN_IF_ERROR(CheckBytes(parts.source.size(), "source"));
  HT_RETURN_IF_ERROR(CheckBytes(parts.report.size(), "report"));
  message->clear_program();
  message->clear_source();
  message->clear_report();
  if (!Pack(parts.program, message->mutable_packed_program())) {
    message->clear_packed_program();
    message->set_program(std::string(parts.program));
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

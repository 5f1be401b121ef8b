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
// A piece that deflates better is stored as it is, so that no file can claim
// more.
constexpr uint64_t kMostRatio = 50;
constexpr size_t kPiece = size_t{1} << 20;
// Beyond that the time counts for more than a tenth of the bytes: a sixth of a
// compile's of thousands of ops.
constexpr size_t kSmallPart = size_t{64} << 10;
constexpr int kStored = 0, kFast = 1, kSmall = 6;

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* owned) const { kFree(owned); }
};
using DeflateCompressor =
    std::unique_ptr<libdeflate_compressor,
                    Freed<libdeflate_compressor, libdeflate_free_compressor>>;
using Decompressor = std::unique_ptr<
    libdeflate_decompressor,
    Freed<libdeflate_decompressor, libdeflate_free_decompressor>>;

absl::Status FromBytes(absl::string_view bytes,
                       google::protobuf::Message* message) {
  bool parsed = false;
  HT_RETURN_IF_ERROR(ParseBinaryRecords(bytes, "a part", message, &parsed));
  return parsed ? absl::OkStatus() : ModelError("a part is none of its kind");
}

// Hands what is serialized on.
class PackerStream : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit PackerStream(Packer* packer) : packer_(packer) {}
  bool Write(const void* bytes, int size) override {
    packer_->Append(absl::string_view(static_cast<const char*>(bytes), size));
    return true;
  }

 private:
  Packer* packer_;
};

void Serialize(const google::protobuf::Message& message,
               google::protobuf::io::ZeroCopyOutputStream* stream) {
  google::protobuf::io::CodedOutputStream coded(stream);
  coded.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&coded);
  coded.Trim();
}

}  // namespace

std::string ToBytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  Serialize(message, &stream);
  return bytes;
}

struct Packer::Compressor {
  libdeflate_compressor* At(int level) {
    if (compressor == nullptr || level != at) {
      compressor.reset(libdeflate_alloc_compressor(level));
      if (compressor == nullptr) throw std::bad_alloc();
      at = level;
    }
    return compressor.get();
  }
  char* RoomFor(size_t bytes) {
    if (bytes > room_bytes) {
      room.reset(new char[bytes]);
      room_bytes = bytes;
    }
    return room.get();
  }
  DeflateCompressor compressor;
  int at = 0;
  std::unique_ptr<char[]> room;
  size_t room_bytes = 0;
};

Packer::Packer() : compressor_(new Compressor) {}
Packer::~Packer() = default;

void Packer::Append(absl::string_view bytes) {
  while (piece_.size() + bytes.size() > kPiece) {
    const size_t part = kPiece - piece_.size();
    piece_.append(bytes.data(), part);
    bytes.remove_prefix(part);
    Deflate(kFast);
  }
  piece_.append(bytes.data(), bytes.size());
}

void Packer::Append(const google::protobuf::Message& message) {
  PackerStream copying(this);
  google::protobuf::io::CopyingOutputStreamAdaptor stream(&copying);
  Serialize(message, &stream);
}

void Packer::Deflate(int level) {
  libdeflate_compressor* const compressor = compressor_->At(level);
  const size_t bound =
      libdeflate_zlib_compress_bound(compressor, piece_.size());
  char* const room = compressor_->RoomFor(bound);
  const size_t size = libdeflate_zlib_compress(compressor, piece_.data(),
                                               piece_.size(), room, bound);
  if (level != kStored && piece_.size() / size >= kMostRatio) {
    return Deflate(kStored);
  }
  packed_.set_bytes(packed_.bytes() + piece_.size());
  packed_.mutable_deflated()->append(room, size);
  piece_.clear();
}

proto::Packed Packer::Finish() {
  const bool small = packed_.bytes() == 0 && piece_.size() <= kSmallPart;
  if (!piece_.empty()) Deflate(small ? kSmall : kFast);
  return std::move(packed_);
}

absl::StatusOr<std::string> Unpack(const proto::Packed& packed) {
  const std::string& deflated = packed.deflated();
  if (packed.bytes() > kMostBytes ||
      (packed.bytes() > 0 && packed.bytes() / kMostRatio >= deflated.size())) {
    return ModelError("a part claims ", WithCommas(packed.bytes()),
                      " bytes, packed in ", WithCommas(deflated.size()));
  }
  const Decompressor decompressor(libdeflate_alloc_decompressor());
  if (decompressor == nullptr) throw std::bad_alloc();
  std::string bytes(packed.bytes(), '\0');
  // One stream after the other; together exactly as many bytes.
  size_t read = 0, written = 0;
  while (read < deflated.size()) {
    size_t in = 0, out = 0;
    const libdeflate_result result = libdeflate_zlib_decompress_ex(
        decompressor.get(), deflated.data() + read, deflated.size() - read,
        &bytes[written], bytes.size() - written, &in, &out);
    if (result != LIBDEFLATE_SUCCESS || in == 0) break;
    read += in;
    written += out;
  }
  if (read < deflated.size() || written < bytes.size()) {
    return ModelError("a part cannot be unpacked");
  }
  return bytes;
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

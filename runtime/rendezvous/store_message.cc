#include "runtime/rendezvous/store_message.h"

#include "absl/strings/str_cat.h"
#include "runtime/rendezvous/hmac.h"

namespace halftone {
namespace runtime {
namespace {

void Append(std::string& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i)));
  }
}

uint64_t Little(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

MessageWriter& MessageWriter::U8(uint8_t value) {
  Append(bytes_, value, 1);
  return *this;
}

MessageWriter& MessageWriter::I64(int64_t value) {
  Append(bytes_, static_cast<uint64_t>(value), 8);
  return *this;
}

MessageWriter& MessageWriter::Text(absl::string_view value) {
  Append(bytes_, value.size(), 4);
  bytes_.append(value.data(), value.size());
  return *this;
}

std::string MessageWriter::Frame() const {
  std::string frame;
  Append(frame, bytes_.size(), 4);
  return frame + bytes_;
}

absl::string_view MessageReader::Take(size_t bytes) {
  if (!ok_ || rest_.size() < bytes) {
    ok_ = false;
    return {};
  }
  const absl::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

uint8_t MessageReader::U8() { return static_cast<uint8_t>(Little(Take(1))); }

int64_t MessageReader::I64() { return static_cast<int64_t>(Little(Take(8))); }

std::string MessageReader::Text() { return std::string(Take(Little(Take(4)))); }

int64_t FrameLength(absl::string_view bytes) {
  return static_cast<int64_t>(Little(bytes.substr(0, 4)));
}

std::string ClientProof(absl::string_view token, absl::string_view server_nonce,
                        absl::string_view client_nonce, int64_t rank) {
  return HmacSha256(
      token, absl::StrCat("client ", rank, " ", server_nonce, client_nonce));
}

std::string ServerProof(absl::string_view token, absl::string_view server_nonce,
                        absl::string_view client_nonce) {
  return HmacSha256(token, absl::StrCat("server ", server_nonce, client_nonce));
}

}  // namespace runtime
}  // namespace halftone

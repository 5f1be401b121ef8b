// What goes over the wire between the store and its clients.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_STORE_MESSAGE_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_STORE_MESSAGE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// A frame is a length (u32, little endian) and that many bytes.
inline constexpr int64_t kMaxFrame = int64_t{1} << 20;
// Before a client has shown that it belongs to the run.
inline constexpr int64_t kMaxHelloFrame = 1024;
// The store's first bytes on a connection; its nonce follows.
inline constexpr absl::string_view kStoreMagic = "HTSTORE1";
inline constexpr int kNonceBytes = 16;

enum class StoreRequest : uint8_t {
  kHello = 1,
  kSet,
  kWait,
  kAdd,
  kFail,
  kBye,
};
enum class StoreReply : uint8_t {
  kOk = 0,
  kRefused,   // with a reason
  kTimedOut,  // with the keys that are missing
  kClosed,    // the store is going away
  kNotYet,    // the store serves an earlier attempt: come again
};

// Appends fields to a frame's bytes.
class MessageWriter {
 public:
  MessageWriter& U8(uint8_t value);
  MessageWriter& I64(int64_t value);
  MessageWriter& Text(absl::string_view value);
  // The frame: the length, then what was written.
  std::string Frame() const;

 private:
  std::string bytes_;
};

// Takes fields off a frame's bytes. After a field that is not there, ok() is
// false and everything reads as zero.
class MessageReader {
 public:
  explicit MessageReader(absl::string_view bytes) : rest_(bytes) {}
  uint8_t U8();
  int64_t I64();
  std::string Text();
  bool ok() const { return ok_; }
  // All was read, and was there.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  absl::string_view Take(size_t bytes);

  absl::string_view rest_;
  bool ok_ = true;
};

// The length at the start of a frame of which at least 4 bytes are there.
int64_t FrameLength(absl::string_view bytes);

// What each side proves; `token` is the run's secret.
std::string ClientProof(absl::string_view token, absl::string_view server_nonce,
                        absl::string_view client_nonce, int64_t rank);
std::string ServerProof(absl::string_view token, absl::string_view server_nonce,
                        absl::string_view client_nonce);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_STORE_MESSAGE_H_

// HMAC-SHA-256 (RFC 2104, of libcrypto): proves that a peer knows the run's
// token without sending it.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_HMAC_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_HMAC_H_

#include <string>

#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// 32 bytes.
std::string HmacSha256(absl::string_view key, absl::string_view message);

// Equality in a time that does not depend on where they differ.
bool EqualSecrets(absl::string_view a, absl::string_view b);

// `bytes` random bytes of the system.
std::string RandomBytes(int bytes);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_HMAC_H_

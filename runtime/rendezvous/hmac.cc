#include "runtime/rendezvous/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <new>

#include "graph/base/check.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kDigestBytes = 32;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string HmacSha256(absl::string_view key, absl::string_view message) {
  std::string digest(kDigestBytes, '\0');
  unsigned int size = 0;
  // Fails only where there is no memory left.
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           Bytes(message), message.size(),
           reinterpret_cast<unsigned char*>(&digest[0]), &size) == nullptr) {
    throw std::bad_alloc();
  }
  HT_CHECK(size == kDigestBytes, "bytes of a SHA-256 digest");
  return digest;
}

bool EqualSecrets(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string RandomBytes(int bytes) {
  std::string data(bytes, '\0');
  HT_CHECK(getrandom(&data[0], data.size(), 0) == bytes,
           "the system gives no random bytes");
  return data;
}

}  // namespace runtime
}  // namespace halftone

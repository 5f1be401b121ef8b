#include "runtime/rendezvous/hmac.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

std::string Hex(const std::string& bytes) {
  return absl::BytesToHexString(bytes);
}

// RFC 4231, cases 2 and 6.
TEST(HmacSha256, KnownCodes) {
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key "
                           "First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(Hex(HmacSha256("", "")),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(EqualSecrets, Compares) {
  EXPECT_TRUE(EqualSecrets("abc", "abc"));
  EXPECT_FALSE(EqualSecrets("abc", "abd"));
  EXPECT_FALSE(EqualSecrets("abc", "ab"));
}

TEST(RandomBytes, Differ) { EXPECT_NE(RandomBytes(16), RandomBytes(16)); }

}  // namespace
}  // namespace runtime
}  // namespace halftone

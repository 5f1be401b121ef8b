#include "runtime/data/npz.h"

#include <zlib.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

template <typename T>
T At(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, &bytes[offset], sizeof(T));
  return value;
}

TEST(NpzTest, NamesLeadNowhereElse) {
  const std::pair<const char*, const char*> kCases[] = {
      {"logits", "logits"},
      {"layer1/conv.w@GRAD-1 $x", "layer1/conv.w@GRAD-1 $x"},
      {"gr\xc3\xbcn", "gr\xc3\xbcn"},
      {"../../x", "%2E%2E/%2E%2E/x"},
      {"a/../b", "a/%2E%2E/b"},
      {"a/./b", "a/%2E/b"},
      {"..a/b..", "..a/b.."},
      {"/etc/x", "%2Fetc/x"},
      {"a//b", "a%2F%2Fb"},
      {"a/", "a%2F"},
      {"..\\x", "..%5Cx"},
      {"C:x", "C%3Ax"},
      {"a%2Fb", "a%252Fb"},
      {"a\033[1m", "a%1B[1m"},
      {"\xff\xc3\xbc", "%FF%C3%BC"},
  };
  std::set<std::string> members;
  for (const auto& [name, member] : kCases) {
    EXPECT_EQ(MemberName(name), member);
    EXPECT_TRUE(members.insert(MemberName(name)).second);
  }
  const std::string longest(70000, 'x');
  EXPECT_LT(MemberName(longest).size(), 100u);
  EXPECT_NE(MemberName(longest), MemberName(longest + "y"));
}

TEST(NpzTest, EveryNameOnce) {
  EXPECT_EQ(SerializeNpz({{"a", {1}, {1}}, {"a", {1}, {2}}}),
            SerializeNpz({{"a", {1}, {1}}}));
}

// The zip as its specification reads it: from the end.
TEST(NpzTest, EntriesAreFoundThroughTheDirectory) {
  const std::vector<NpzArray> arrays = {{"a", {2}, {1, 2}}, {"b", {}, {3}}};
  const std::string npz = SerializeNpz(arrays);
  const size_t end = npz.size() - 22;
  ASSERT_EQ(npz.substr(end, 4), std::string("PK\x05\x06", 4));
  EXPECT_EQ(At<uint16_t>(npz, end + 10), 2);
  size_t entry = At<uint32_t>(npz, end + 16);
  for (const NpzArray& array : arrays) {
    ASSERT_EQ(npz.substr(entry, 4), std::string("PK\x01\x02", 4));
    const uint32_t crc = At<uint32_t>(npz, entry + 16);
    const uint32_t size = At<uint32_t>(npz, entry + 24);
    const size_t name = At<uint16_t>(npz, entry + 28);
    const uint32_t local = At<uint32_t>(npz, entry + 42);
    EXPECT_EQ(npz.substr(entry + 46, name), array.name + ".npy");
    ASSERT_EQ(npz.substr(local, 4), std::string("PK\x03\x04", 4));
    const std::string npy = npz.substr(local + 30 + name, size);
    EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(npy.data()), size), crc);
    const size_t header = At<uint16_t>(npy, 8);
    EXPECT_EQ((10 + header) % 64, 0u);
    ASSERT_EQ(npy.size(), 10 + header + 4 * array.values.size());
    EXPECT_EQ(At<float>(npy, 10 + header), array.values[0]);
    entry += 46 + name;
  }
  EXPECT_EQ(entry, end);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

#include "runtime/data/npz.h"

#include <zlib.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "gtest/gtest.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/zip_archive.h"

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
  const NpzArray first = FloatArray("a", {1}, {1});
  EXPECT_EQ(SerializeNpz({first, FloatArray("a", {1}, {2})}),
            SerializeNpz({first}));
}

// The zip as its specification reads it: from the end.
TEST(NpzTest, EntriesAreFoundThroughTheDirectory) {
  const std::vector<NpzArray> arrays = {FloatArray("a", {2}, {1, 2}),
                                        FloatArray("b", {}, {3})};
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
    ASSERT_EQ(npy.size(), 10 + header + array.bytes.size());
    EXPECT_EQ(npy.substr(10 + header), array.bytes);
    entry += 46 + name;
  }
  EXPECT_EQ(entry, end);
}

// What is written is what npz: reads.
TEST(NpzTest, ComesBackInEveryDtype) {
  const std::vector<std::pair<DType, std::string>> kTypes = {
      {DType::kF32, "float32[2]"}, {DType::kF16, "float16[2]"},
      {DType::kF64, "float64[2]"}, {DType::kI32, "int32[2]"},
      {DType::kI64, "int64[2]"},   {DType::kU8, "uint8[2]"},
      {DType::kBool, "bool[2]"}};
  for (const auto& [dtype, described] : kTypes) {
    NpzArray array{"a", dtype, {2}, std::string(2 * SizeOf(dtype), '\0')};
    array.bytes[0] = 1;
    const std::string npz = SerializeNpz({array});
    const auto archive = ZipArchive::Parse(npz, "a.npz");
    ASSERT_TRUE(archive.ok()) << archive.status();
    std::string unpacked, made, note;
    const auto npy = archive->Read(archive->members()[0], 1, &unpacked);
    ASSERT_TRUE(npy.ok()) << npy.status();
    const auto read = ParseNpy(*npy, "a");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Describe(*read), described);
    EXPECT_EQ(*ElementsAs(*read, dtype, &made, &note), array.bytes);
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

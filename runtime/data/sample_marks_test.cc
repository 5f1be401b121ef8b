#include "runtime/data/sample_marks.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using testing::HasSubstr;

using Keys = std::vector<uint64_t>;

Keys Counting(int64_t n) {
  Keys keys(n);
  for (int64_t i = 0; i < n; ++i) keys[i] = i + 1;
  return keys;
}

std::string Mark(const Keys& keys) {
  return MarkSamples(static_cast<int64_t>(keys.size()),
                     [&](int64_t i) { return keys[i]; });
}

absl::Status Check(const std::string& marks, const Keys& keys) {
  return CheckMarks(
      marks, static_cast<int64_t>(keys.size()),
      [&](int64_t i) { return keys[i]; },
      [&](int64_t i) { return absl::StrCat("key ", keys[i]); });
}

void ExpectError(const absl::Status& status, const std::string& what) {
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(what));
}

TEST(SampleMarksTest, Few) {
  const std::string marks = Mark(Counting(20));
  EXPECT_TRUE(Check(marks, Counting(20)).ok());
  Keys keys = Counting(20);
  keys[7] = 700;
  ExpectError(
      Check(marks, keys),
      "20 samples, now there are 20: the first that differs is key 700");
  keys = Counting(20);
  keys.erase(keys.begin() + 3);
  ExpectError(Check(marks, keys),
              "now there are 19: the first that differs is "
              "key 5");
  ExpectError(Check(marks, Counting(18)), "those behind key 18 are gone");
  ExpectError(Check(marks, Counting(21)), "the first that differs is key 21");
}

TEST(SampleMarksTest, Many) {
  const std::string marks = Mark(Counting(100000));
  EXPECT_LT(marks.size(), 5000u);
  EXPECT_TRUE(Check(marks, Counting(100000)).ok());
  Keys keys = Counting(100000);
  keys[1000] = 0;
  // 391 in a block.
  ExpectError(Check(marks, keys), "is among key 783 to key 1173");
  ExpectError(Check(marks, Counting(99999)),
              "now there are 99,999: the first "
              "that differs is among key 99");
  // With the last block whole.
  ExpectError(Check(Mark(Counting(512)), Counting(513)), "is key 513");
}

TEST(SampleMarksTest, Damaged) {
  for (const char* marks : {"", "1", "1 1", "1 1 ", "2 1 a", "-1 1 a", "1 0 a",
                            "9223372036854775807 1 a", "a b c", "1 1 a b"}) {
    EXPECT_FALSE(Check(marks, Counting(1)).ok()) << marks;
  }
  ExpectError(Check("2 1 a", Counting(1)), "says of its data is damaged");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

#include "graph/base/error_list.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(ErrorListTest, OneErrorStaysWhatItIs) {
  ErrorList errors;
  EXPECT_TRUE(errors.Add(absl::OkStatus()));
  EXPECT_TRUE(errors.ToStatus().ok());
  EXPECT_FALSE(errors.Add(UsageError("a")));
  EXPECT_FALSE(errors.Add(ErrorList::Follows()));
  EXPECT_EQ(errors.ToStatus(), UsageError("a"));
}

TEST(ErrorListTest, SeveralComeInOrderAndOnce) {
  ErrorList errors;
  errors.Add(ModelError("b"));
  errors.Add(UsageError("a"));
  errors.Add(ModelError("b"));
  EXPECT_EQ(errors.ToStatus().message(), "b\na");
  EXPECT_EQ(ExitCodeOf(errors.ToStatus()), ExitCode::kModel);
}

TEST(ErrorListTest, OfManyTheFirst20) {
  ErrorList errors;
  for (int i = 0; i < 25; ++i) errors.Add(ModelError("e", i));
  const std::string text(errors.ToStatus().message());
  EXPECT_THAT(text, testing::HasSubstr("e0\ne1\n"));
  EXPECT_THAT(text, testing::EndsWith("e19\nand 5 more errors"));
}

}  // namespace
}  // namespace halftone

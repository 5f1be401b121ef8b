#include "graph/base/error.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/base/check.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(ErrorTest, EachClassHasItsExitCode) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(ModelError("x")), ExitCode::kModel);
  EXPECT_EQ(ExitCodeOf(UsageError("x")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(MakeError(ExitCode::kDiffer, "x")), ExitCode::kDiffer);
  EXPECT_EQ(ExitCodeOf(CompilerBug("x")), ExitCode::kCompilerBug);
  EXPECT_EQ(ExitCodeOf(DivergedError("x")), ExitCode::kDiverged);
  EXPECT_EQ(ExitCodeOf(OutOfMemoryError("x")), ExitCode::kOutOfMemory);
  EXPECT_EQ(ExitCodeOf(CommunicationError("x")), ExitCode::kCommunication);
  EXPECT_EQ(ExitCodeOf(CheckpointError("x")), ExitCode::kCheckpoint);
  EXPECT_EQ(ExitCodeOf(DeviceError("x")), ExitCode::kDevice);
}

TEST(ErrorTest, PartsAreJoined) {
  EXPECT_EQ(ModelError("m.pbtxt:", 12, ": ", 0.5).message(), "m.pbtxt:12: 0.5");
}

TEST(ErrorTest, AForeignStatusHasAnExitCodeToo) {
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), ExitCode::kCompilerBug);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("x")), ExitCode::kModel);
}

TEST(ErrorTest, AnnotateKeepsTheClass) {
  const absl::Status status = Annotate(CheckpointError("torn"), "step-12");
  EXPECT_EQ(status.message(), "step-12: torn");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCheckpoint);
  EXPECT_TRUE(Annotate(absl::OkStatus(), "nothing").ok());
}

absl::StatusOr<std::string> Text(bool fails) {
  if (fails) return ModelError("no text");
  return std::string("text");
}

absl::StatusOr<size_t> Length(bool fails) {
  HT_ASSIGN_OR_RETURN(const std::string text, Text(fails));
  std::string again;
  HT_ASSIGN_OR_RETURN(again, Text(false));
  EXPECT_EQ(text, again);
  return text.size();
}

absl::Status Both(bool first, bool second) {
  HT_RETURN_IF_ERROR(Text(first).status());
  HT_RETURN_IF_ERROR(Text(second).status());
  return absl::OkStatus();
}

TEST(ErrorTest, MacrosReturnTheError) {
  EXPECT_EQ(*Length(false), 4);
  EXPECT_EQ(Length(true).status().message(), "no text");
  EXPECT_TRUE(Both(false, false).ok());
  EXPECT_FALSE(Both(true, false).ok());
  EXPECT_EQ(ExitCodeOf(Both(false, true)), ExitCode::kModel);
}

TEST(CheckDeathTest, NamesTheConditionAndTheMessage) {
  HT_CHECK(1 + 1 == 2, "arithmetic");
  EXPECT_DEATH(HT_CHECK(1 + 1 == 3, "arithmetic"), "1 \\+ 1 == 3: arithmetic");
}

}  // namespace
}  // namespace halftone

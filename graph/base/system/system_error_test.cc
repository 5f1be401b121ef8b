#include "graph/base/system/system_error.h"

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(SystemError, WantOfMemoryIsAClassOfItsOwn) {
  const absl::Status memory =
      SystemError(ExitCode::kCheckpoint, ENOMEM, "x: cannot open");
  EXPECT_EQ(ExitCodeOf(memory), ExitCode::kOutOfMemory);
  EXPECT_EQ(memory.message(), "x: cannot open: Cannot allocate memory");
  // Files are short, not memory.
  for (int error : {EMFILE, ENFILE, ENOSPC}) {
    const absl::Status other =
        SystemError(ExitCode::kCheckpoint, error, "x: cannot open");
    EXPECT_EQ(ExitCodeOf(other), ExitCode::kCheckpoint) << other;
  }
  EXPECT_EQ(SystemError(ExitCode::kModel, EMFILE, "x", "set TMPDIR").message(),
            "x: Too many open files; set TMPDIR");
}

TEST(SystemError, AnotherClassKeepsWantOfMemory) {
  EXPECT_TRUE(Reclassified(absl::OkStatus(), ExitCode::kCheckpoint).ok());
  const absl::Status model = ModelError("no");
  EXPECT_EQ(ExitCodeOf(Reclassified(model, ExitCode::kCheckpoint)),
            ExitCode::kCheckpoint);
  EXPECT_EQ(Reclassified(model, ExitCode::kCheckpoint).message(), "no");
  EXPECT_EQ(
      ExitCodeOf(Reclassified(OutOfMemoryError("no"), ExitCode::kCheckpoint)),
      ExitCode::kOutOfMemory);
}

TEST(SystemError, Exceptions) {
  EXPECT_TRUE(IsOutOfMemory(std::bad_alloc()));
  EXPECT_TRUE(IsOutOfMemory(std::length_error("vector")));
  EXPECT_TRUE(IsOutOfMemory(
      std::system_error(std::make_error_code(std::errc::not_enough_memory))));
  EXPECT_TRUE(IsOutOfMemory(std::system_error(
      std::make_error_code(std::errc::resource_unavailable_try_again))));
  EXPECT_FALSE(IsOutOfMemory(
      std::system_error(std::make_error_code(std::errc::broken_pipe))));
  EXPECT_FALSE(IsOutOfMemory(std::runtime_error("connection lost")));
}

}  // namespace
}  // namespace halftone

#include "graph/base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

std::string Path(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

int FilesThatBeginWith(const std::string& prefix) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(::testing::TempDir())) {
    const std::string name = entry.path().filename().string();
    files += name.compare(0, prefix.size(), prefix) == 0 ? 1 : 0;
  }
  return files;
}

TEST(FileTest, WritesAndReadsBack) {
  const std::string path = Path("file");
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  EXPECT_EQ(*ReadFile(path), content);
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(*ReadFile(path), "");
}

TEST(FileTest, ErrorsNameThePathAndTheCause) {
  const absl::Status missing = ReadFile(Path("missing")).status();
  EXPECT_EQ(ExitCodeOf(missing), ExitCode::kModel);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("missing: cannot open: No such file"));
  EXPECT_THAT(std::string(WriteFileAtomically(Path("no/such/x"), "").message()),
              HasSubstr("no/such/x: cannot write: No such file"));
}

TEST(FileTest, RefusesWhatIsNoFile) {
  EXPECT_THAT(std::string(ReadFile(Path("")).status().message()),
              HasSubstr("found a directory"));
  EXPECT_THAT(std::string(ReadFile("/dev/zero").status().message()),
              HasSubstr("found a device"));
  const std::string pipe = Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // And does not wait for a writer.
  EXPECT_THAT(std::string(ReadFile(pipe).status().message()),
              HasSubstr("found a pipe"));
}

TEST(FileTest, RefusesWhatIsTooLong) {
  const std::string path = Path("long");
  ASSERT_TRUE(WriteFileAtomically(path, "12345").ok());
  EXPECT_TRUE(ReadFile(path, 5).ok());
  EXPECT_THAT(std::string(ReadFile(path, 4).status().message()),
              HasSubstr("5 bytes, more than the limit of 4"));
}

TEST(FileTest, AFailedWriteLeavesNothingBehind) {
  const std::string directory = Path("taken");
  ASSERT_TRUE(MakeDirectories(directory + "/x").ok());
  EXPECT_FALSE(WriteFileAtomically(directory, "content").ok());
  EXPECT_EQ(FilesThatBeginWith("taken"), 1);
}

// A link of the name that a temporary file might get is not written through.
TEST(FileTest, ALinkLaidOutForItIsNotFollowed) {
  ASSERT_TRUE(MakeDirectories(Path("trap")).ok());
  const std::string victim = Path("trap/victim");
  ASSERT_TRUE(WriteFileAtomically(victim, "mine").ok());
  for (int i = 0; i < 60; ++i) {
    const std::string guess = Path("trap/x.tmp." + std::to_string(::getpid()) +
                                   "." + std::to_string(i));
    ASSERT_EQ(::symlink("victim", guess.c_str()), 0);
  }
  ASSERT_TRUE(WriteFileAtomically(Path("trap/x"), "theirs").ok());
  EXPECT_EQ(*ReadFile(victim), "mine");
  EXPECT_EQ(*ReadFile(Path("trap/x")), "theirs");
}

TEST(FileTest, NamesMayBeAsLongAsTheyCan) {
  const std::string path = Path(std::string(255, 'n'));
  EXPECT_TRUE(WriteFileAtomically(path, "y").ok());
  EXPECT_EQ(*ReadFile(path), "y");
}

TEST(FileTest, MakesDirectories) {
  ASSERT_TRUE(MakeDirectories(Path("a/b//c")).ok());
  EXPECT_TRUE(MakeDirectories(Path("a/b/c")).ok());
  EXPECT_TRUE(WriteFileAtomically(Path("a/b/c/file"), "x").ok());
  EXPECT_FALSE(MakeDirectories(Path("a/b/c/file")).ok());
  EXPECT_FALSE(MakeDirectories(Path("a/b/c/file/d")).ok());
  EXPECT_FALSE(MakeDirectories("").ok());
}

}  // namespace
}  // namespace halftone

#include "graph/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

std::string Path(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

// What `path` is: 'f'ile, 'l'ink, 'p'ipe ...
char KindOf(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return '-';
  return S_ISREG(info.st_mode)    ? 'f'
         : S_ISLNK(info.st_mode)  ? 'l'
         : S_ISFIFO(info.st_mode) ? 'p'
                                  : '?';
}

TEST(WriteOutputTest, FollowsLinks) {
  ASSERT_TRUE(MakeDirectories(Path("links/to")).ok());
  const std::string file = Path("links/to/file"), link = Path("links/link"),
                    second = Path("links/second"), new_one = Path("links/new");
  ASSERT_TRUE(WriteFileAtomically(file, "old").ok());
  ASSERT_EQ(::symlink("to/file", link.c_str()), 0);
  ASSERT_EQ(::symlink("link", second.c_str()), 0);
  ASSERT_EQ(::symlink("to/fresh", new_one.c_str()), 0);
  ASSERT_TRUE(WriteOutput(second, "new").ok());
  EXPECT_EQ(*ReadFile(file), "new");
  ASSERT_TRUE(WriteOutput(new_one, "fresh").ok());
  EXPECT_EQ(*ReadFile(Path("links/to/fresh")), "fresh");
  for (const std::string& name : {link, second, new_one}) {
    EXPECT_EQ(KindOf(name), 'l') << name;
  }
  const std::string loop = Path("links/loop");
  ASSERT_EQ(::symlink("loop", loop.c_str()), 0);
  EXPECT_THAT(std::string(WriteOutput(loop, "x").message()),
              HasSubstr("loop: cannot write: Too many levels"));
  // Files of our own directories are another matter.
  ASSERT_TRUE(WriteFileAtomically(link, "plain").ok());
  EXPECT_EQ(KindOf(link), 'f');
  EXPECT_EQ(*ReadFile(file), "new");
}

TEST(WriteOutputTest, WritesThroughWhatIsNoPlainFile) {
  EXPECT_TRUE(WriteOutput("/dev/null", "content").ok());
  EXPECT_EQ(KindOf("/dev/null"), '?');
  EXPECT_THAT(std::string(WriteOutput("/dev/full", "content").message()),
              HasSubstr("/dev/full: cannot write: No space left"));
  const std::string pipe = Path("out-pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR);
  ASSERT_TRUE(WriteOutput(pipe, "through").ok());
  char read[16];
  EXPECT_EQ(::read(reader, read, sizeof(read)), 7);
  EXPECT_EQ(KindOf(pipe), 'p');
  ::close(reader);
}

TEST(WriteOutputTest, GoesOnWhereADescriptorIs) {
  const std::string path = Path("descriptor");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_EQ(::write(fd, "before ", 7), 7);
  const std::string name = "/dev/fd/" + std::to_string(fd);
  ASSERT_TRUE(WriteOutput(name, "between ").ok());
  ASSERT_EQ(::write(fd, "after", 5), 5);
  EXPECT_EQ(*ReadFile(path), "before between after");
  ::close(fd);
}

TEST(WriteOutputTest, ADashIsStdout) {
  ::testing::internal::CaptureStdout();
  ASSERT_TRUE(WriteOutput("-", "shown").ok());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "shown");
}

TEST(WriteOutputTest, KeepsTheModeOfAFile) {
  const std::string path = Path("private");
  ASSERT_TRUE(WriteOutput(path, "1").ok());
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(WriteOutput(path, "2").ok());
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(*ReadFile(path), "2");
}

TEST(WriteOutputTest, RefusesADirectory) {
  ASSERT_TRUE(MakeDirectories(Path("folder")).ok());
  EXPECT_THAT(std::string(WriteOutput(Path("folder"), "x").message()),
              HasSubstr("folder: cannot write: it is a directory"));
}

TEST(CheckOutputTest, SaysWhatWritingWouldSay) {
  ASSERT_TRUE(MakeDirectories(Path("checked")).ok());
  const std::string nowhere = Path("nowhere/file");
  for (const std::string& path : {nowhere, Path("checked")}) {
    const absl::Status said = CheckOutput(path);
    EXPECT_FALSE(said.ok());
    EXPECT_EQ(said, WriteOutput(path, "x"));
  }
  // What can be written is left as it is.
  const std::string fresh = Path("checked/fresh"), old = Path("checked/old");
  ASSERT_TRUE(WriteOutput(old, "old").ok());
  for (const std::string& path : {fresh, old, std::string("/dev/null")}) {
    EXPECT_TRUE(CheckOutput(path).ok()) << path;
  }
  EXPECT_EQ(KindOf(fresh), '-');
  EXPECT_EQ(*ReadFile(old), "old");
  EXPECT_EQ(::rmdir(Path("checked").c_str()), -1);
  ASSERT_EQ(::unlink(old.c_str()), 0);
  EXPECT_EQ(::rmdir(Path("checked").c_str()), 0) << "something was left there";
}

}  // namespace
}  // namespace halftone

#include "graph/base/disk/directory_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr absl::Duration kNow = absl::ZeroDuration();

std::string Fresh() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat(::testing::TempDir(), "/", info->name());
}

void ExpectInUse(const absl::Status& status, pid_t holder) {
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex(absl::StrCat(" is in use by pid ", holder,
                                         " on .+ since 20[0-9][0-9]-.*; wait "
                                         "for it, stop it, or choose another "
                                         "--out")));
}

TEST(DirectoryLockTest, HasOneHolder) {
  const std::string path = Fresh();
  {
    auto lock = DirectoryLock::Take(path, kNow);
    ASSERT_TRUE(lock.ok()) << lock.status();
    ExpectInUse(DirectoryLock::Take(path, kNow).status(), getpid());
    ExpectInUse(DirectoryLock::Probe(path), getpid());
    const DirectoryLock moved = *std::move(lock);
    ExpectInUse(DirectoryLock::Probe(path), getpid());
  }
  // Nothing is left of a run that wrote nothing.
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(DirectoryLock::Probe(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(DirectoryLockTest, LeavesWhatWasThere) {
  const std::string path = Fresh();
  ASSERT_TRUE(MakeDirectories(path).ok());
  { ASSERT_TRUE(DirectoryLock::Take(path, kNow).ok()); }
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST(DirectoryLockTest, AKilledHolderHoldsNothing) {
  const std::string path = Fresh();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = DirectoryLock::Take(path, kNow);
    if (write(ready[1], lock.ok() ? "y" : "n", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  ExpectInUse(DirectoryLock::Take(path, kNow).status(), child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(path + "/.lock"));
  EXPECT_TRUE(DirectoryLock::Probe(path).ok());
  EXPECT_TRUE(DirectoryLock::Take(path, kNow).ok());
}

// Whatever stands in the file, it is not shown as it is.
TEST(DirectoryLockTest, AHolderIsShownOnlyAsPlainText) {
  const std::string path = Fresh();
  const auto lock = DirectoryLock::Take(path, kNow);
  ASSERT_TRUE(lock.ok());
  for (const std::string& bytes :
       {std::string("\033[2Jyou won\n"), std::string(),
        std::string(999, '\xff'), std::string(8, '\0')}) {
    const int fd = open((path + "/.lock").c_str(), O_WRONLY | O_TRUNC);
    ASSERT_EQ(write(fd, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    close(fd);
    EXPECT_EQ(DirectoryLock::Probe(path).message(),
              absl::StrCat(path,
                           " is in use by a process that has not said "
                           "which; wait for it, stop it, or choose "
                           "another --out"));
  }
}

// What its message says of `path` and of where the locked directory is.
void ExpectLost(const DirectoryLock& lock, absl::string_view is,
                absl::string_view locked) {
  const absl::Status status = lock.Check();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(is,
                                     ": the one that was locked and "
                                     "written to ",
                                     locked)));
}

TEST(DirectoryLockTest, KnowsThatItsPathIsAnotherDirectory) {
  const std::string path = Fresh(), moved = path + "-moved";
  auto lock = DirectoryLock::Take(path, kNow);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(lock->Check().ok()) << lock->Check();
  std::filesystem::rename(path, moved);
  const std::string now = std::filesystem::canonical(moved);
  ExpectLost(*lock, path + " is not there any more", "is " + now);
  std::filesystem::create_directory(path);
  const auto other = DirectoryLock::Take(path, kNow);
  ASSERT_TRUE(other.ok()) << other.status();
  ExpectLost(*lock, path + " names another folder", "is " + now);
  EXPECT_TRUE(other->Check().ok()) << other->Check();
  { const DirectoryLock ended = *std::move(lock); }
  EXPECT_TRUE(std::filesystem::exists(path + "/.lock"));
  EXPECT_FALSE(std::filesystem::exists(moved + "/.lock"));
}

TEST(DirectoryLockTest, KnowsThatALinkLeadsElsewhere) {
  const std::string base = Fresh(), link = base + "/latest";
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(absl::StrCat(base, "/", name));
  }
  std::filesystem::create_directory_symlink("a", link);
  const auto lock = DirectoryLock::Take(link, kNow);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(lock->Check().ok()) << lock->Check();
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink("b", link);
  ExpectLost(*lock, link + " names another folder",
             absl::StrCat("is ", std::filesystem::canonical(base).string(),
                          "/a; the other is left as it is"));
}

TEST(DirectoryLockTest, KnowsThatItsDirectoryWasRemoved) {
  const std::string path = Fresh();
  const auto lock = DirectoryLock::Take(path, kNow);
  ASSERT_TRUE(lock.ok()) << lock.status();
  std::filesystem::remove_all(path);
  ExpectLost(*lock, path + " is not there any more", "was removed");
  // The one that is made now has other numbers.
  std::filesystem::create_directory(path);
  ExpectLost(*lock, path + " names another folder", "was removed");
}

TEST(DirectoryLockTest, AFailingLookIsNoLoss) {
  const std::string base = Fresh(), link = base + "/latest";
  std::filesystem::create_directories(base + "/a");
  std::filesystem::create_directory_symlink("a", link);
  const auto lock = DirectoryLock::Take(link, kNow);
  ASSERT_TRUE(lock.ok()) << lock.status();
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink("latest", link);  // ELOOP
  EXPECT_TRUE(lock->Check().ok()) << lock->Check();
  EXPECT_TRUE(DirectoryLock().Check().ok());
}

TEST(DirectoryLockTest, IsNoLink) {
  const std::string path = Fresh(), thesis = path + "/thesis";
  ASSERT_TRUE(MakeDirectories(path).ok());
  ASSERT_TRUE(WriteFileAtomically(thesis, "mine").ok());
  std::filesystem::create_symlink(thesis, path + "/.lock");
  const auto lock = DirectoryLock::Take(path, kNow);
  EXPECT_THAT(std::string(lock.status().message()),
              HasSubstr("/.lock: cannot write"));
  EXPECT_EQ(*ReadFile(thesis), "mine");
}

}  // namespace
}  // namespace halftone

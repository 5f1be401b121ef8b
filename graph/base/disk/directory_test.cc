#include "graph/base/disk/directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Directory::Kind;

// `run` is what is tested, `other` is somebody else's.
class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    base_ = absl::StrCat(::testing::TempDir(), "/", info->name());
    fs::create_directories(other());
    EXPECT_TRUE(WriteFileAtomically(other() + "/thesis", "mine").ok());
    run_ = std::make_unique<Directory>(*Directory::Make(base_ + "/run"));
  }
  std::string other() const { return base_ + "/other"; }
  std::string run() const { return run_->path(); }
  void Link(const std::string& target, const std::string& name) {
    ASSERT_EQ(::symlink(target.c_str(), run_->PathOf(name).c_str()), 0);
  }
  void ExpectOtherAsItWas() {
    EXPECT_THAT(Directory::Open(other())->Names(), ElementsAre("thesis"));
    EXPECT_EQ(*ReadFile(other() + "/thesis"), "mine");
  }

  std::string base_;
  std::unique_ptr<Directory> run_;
};

TEST_F(DirectoryTest, WritesReadsLists) {
  ASSERT_TRUE(run_->Write("b", "old").ok());
  ASSERT_TRUE(run_->Write("b", "new").ok());
  ASSERT_TRUE(run_->MakeChild("a").ok());
  EXPECT_EQ(*run_->Read("b"), "new");
  EXPECT_THAT(run_->Names(), ElementsAre("a", "b"));
  EXPECT_EQ(run_->KindOf("a"), Kind::kDirectory);
  EXPECT_EQ(run_->KindOf("b"), Kind::kFile);
  EXPECT_EQ(run_->KindOf("c"), Kind::kNothing);
  EXPECT_THAT(std::string(run_->Read("b", 2).status().message()),
              HasSubstr("run/b: 3 bytes, more than the limit of 2"));
}

TEST_F(DirectoryTest, AFileIsReplacedWhereALinkLedElsewhere) {
  Link(other() + "/thesis", "metrics.jsonl");
  Link(other() + "/thesis", "metrics.jsonl.tmp");
  ASSERT_TRUE(run_->Write("metrics.jsonl", "ours").ok());
  EXPECT_EQ(run_->KindOf("metrics.jsonl"), Kind::kFile);
  EXPECT_EQ(run_->KindOf("metrics.jsonl.tmp"), Kind::kNothing);
  ExpectOtherAsItWas();
}

TEST_F(DirectoryTest, LinksAreRefusedByName) {
  Link(other(), "ckpt");
  Link(other() + "/thesis", "metrics.jsonl");
  for (const absl::Status& status :
       {run_->OpenChild("ckpt").status(), run_->MakeChild("ckpt").status()}) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("run/ckpt: expected a directory, found a link"));
  }
  for (const absl::Status& status :
       {run_->OpenToRead("metrics.jsonl").status(),
        run_->OpenToAppend("metrics.jsonl").status()}) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("metrics.jsonl: expected a file, found a link"));
  }
  ExpectOtherAsItWas();
}

TEST_F(DirectoryTest, RemovesALinkAndNotWhatItLeadsTo) {
  Link(other(), "directory");
  Link(other() + "/thesis", "file");
  EXPECT_FALSE(run_->RemoveEmpty("directory"));
  EXPECT_TRUE(run_->Unlink("directory"));
  EXPECT_TRUE(run_->Unlink("file"));
  EXPECT_TRUE(run_->Names().empty());
  ExpectOtherAsItWas();
}

TEST_F(DirectoryTest, SpecialFilesAreRefused) {
  ASSERT_EQ(::mkfifo(run_->PathOf("pipe").c_str(), 0644), 0);
  EXPECT_THAT(std::string(run_->Read("pipe").status().message()),
              HasSubstr("run/pipe: expected a file, found a pipe"));
  ASSERT_TRUE(run_->Write("file", "").ok());
  EXPECT_THAT(std::string(run_->MakeChild("file").status().message()),
              HasSubstr("expected a directory, found a file"));
  EXPECT_THAT(std::string(Directory::Open(run() + "/file").status().message()),
              HasSubstr("expected a directory, found a file"));
}

// What the user names may be a link: a disk with more room.
TEST_F(DirectoryTest, ThePathItselfMayBeALink) {
  Link(other(), "elsewhere");
  const auto made = Directory::Make(run() + "/elsewhere");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->Names(), ElementsAre("thesis"));
}

// The directory that was opened stays the one that is written to.
TEST_F(DirectoryTest, StaysWithWhatWasOpened) {
  fs::rename(run(), base_ + "/moved");
  fs::create_directory_symlink(other(), run());
  ASSERT_TRUE(run_->Write("summary.json", "{}").ok());
  EXPECT_EQ(*ReadFile(base_ + "/moved/summary.json"), "{}");
  ExpectOtherAsItWas();
}

TEST_F(DirectoryTest, ExchangesTwoNames) {
  ASSERT_TRUE(run_->Write("a", "1").ok());
  ASSERT_TRUE(run_->MakeChild("b").ok());
  if (!run_->Exchange("a", "b").ok()) GTEST_SKIP() << "not on this disk";
  EXPECT_EQ(run_->KindOf("a"), Kind::kDirectory);
  EXPECT_EQ(*run_->Read("b"), "1");
}

}  // namespace
}  // namespace halftone

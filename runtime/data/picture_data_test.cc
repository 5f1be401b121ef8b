#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/data_format.h"
#include "runtime/data/image/image_testing.h"
#include "runtime/data/image_scan.h"
#include "runtime/data/tar_testing.h"

namespace halftone {
namespace runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

class PictureDataTest : public testing::Test {
 protected:
  PictureDataTest()
      : root_(absl::StrCat(testing::TempDir(), "/pictures.", getpid())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~PictureDataTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& bytes) {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(root_ + "/" + path, bytes).ok());
  }
  // A picture whose red says its number.
  static std::string Numbered(int number, bool png = true) {
    Image image;
    image.Resize(8, 8, 3);
    for (size_t i = 0; i < image.pixels.size(); i += 3) {
      image.pixels[i] = static_cast<uint8_t>(10 * number);
    }
    return png ? EncodePng(image) : EncodeJpeg(image);
  }
  void WriteFolder() {
    Write("train/cat/a.png", Numbered(1));
    Write("train/cat/b.JPG", Numbered(2, false));
    Write("train/dog/c.jpeg", Numbered(3, false));
    Write("val/dog/d.png", Numbered(4));
    Write("train/dog/notes.txt", "not a picture");
    Write("train/dog/.hidden.png", "not seen");
  }
  absl::StatusOr<OpenedData> Open(const std::string& source,
                                  const DataOptions& options = {}) {
    return OpenData(source, {image_, label_}, options);
  }
  absl::StatusOr<OpenedData> OpenFolder(const DataOptions& options = {}) {
    return Open("imagefolder:" + root_, options);
  }
  static std::vector<int> Numbers(const Dataset& data) {
    std::vector<int> numbers;
    std::vector<uint8_t> out(3 * 4 * 4);
    for (int64_t i = 0; i < data.size(); ++i) {
      const absl::Status status = data.Read({i}, 0, absl::MakeSpan(out));
      EXPECT_TRUE(status.ok()) << status;
      numbers.push_back((out[5] + 5) / 10);
    }
    return numbers;
  }
  static std::vector<int64_t> Labels(const Dataset& data) {
    std::vector<int64_t> labels(data.size());
    for (int64_t i = 0; i < data.size(); ++i) {
      const auto out =
          absl::MakeSpan(reinterpret_cast<uint8_t*>(&labels[i]), 8);
      EXPECT_TRUE(data.Read({i}, 1, out).ok());
    }
    return labels;
  }
  static void ExpectError(const absl::Status& status, const std::string& what,
                          ExitCode code = ExitCode::kModel) {
    EXPECT_EQ(ExitCodeOf(status), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  const std::string root_;
  FeedSpec image_{"image", DType::kU8, {3, 4, 4}};
  FeedSpec label_{"label", DType::kI64, {}, 2};
};

TEST_F(PictureDataTest, AScanTellsHowFarItIs) {
  WriteFolder();
  std::string place;
  const auto format = FindDataFormat("imagefolder:" + root_, &place);
  ASSERT_TRUE(format.ok()) << format.status();
  const auto splits = (*format)->open_images(place, {});
  ASSERT_TRUE(splits.ok()) << splits.status();
  std::vector<int64_t> told;
  const auto scan = ScanImages(*splits->train, /*workers=*/1, kMaxUnpack, 0, 1,
                               [&told](int64_t done) { told.push_back(done); });
  ASSERT_TRUE(scan.ok()) << scan.status();
  EXPECT_EQ(scan->count(), 3);
  EXPECT_THAT(told, ElementsAre(0, 1, 2));
}

TEST_F(PictureDataTest, ImageFolder) {
  WriteFolder();
  const auto data = OpenFolder();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(Numbers(*data->train), ElementsAre(1, 2, 3));
  EXPECT_THAT(Labels(*data->train), ElementsAre(0, 0, 1));
  EXPECT_THAT(Numbers(*data->test), ElementsAre(4));
  EXPECT_THAT(Labels(*data->test), ElementsAre(1));
  EXPECT_EQ(data->train->Description(), "3 pictures -> 4x4");
  // One split of classes.
  const auto train = Open("imagefolder:" + root_ + "/train");
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ(train->test, nullptr);
  EXPECT_THAT(Labels(*train->train), ElementsAre(0, 0, 1));
}

TEST_F(PictureDataTest, WrongFolders) {
  ExpectError(OpenFolder().status(), "expected a folder for each class");
  ExpectError(Open("imagefolder:/nowhere/at/all").status(), "/nowhere/at/all");
  ExpectError(Open("imagefolder:").status(), "expected imagefolder:DIR",
              ExitCode::kUsage);
  WriteFolder();
  fs::create_directories(root_ + "/train/bird");
  ExpectError(OpenFolder().status(), "train/bird: expected pictures");
  Write("train/bird/more/x.png", Numbered(1));
  Write("train/bird/y.png", Numbered(1));
  ExpectError(OpenFolder().status(), "pictures alone, found the folder more");
  fs::remove_all(root_ + "/train/bird");
  fs::create_symlink("/not/mounted", root_ + "/train/bird");
  ExpectError(OpenFolder().status(),
              "train/bird: expected a class's folder, found a link to what is "
              "not there");
  fs::remove(root_ + "/train/bird");
  Write("val/dig/e.png", Numbered(5));
  ExpectError(OpenFolder().status(),
              "val/dig: a class that the training data lacks; nearest: dog");
  fs::remove_all(root_ + "/val/dig");
  label_.classes = 1;
  ExpectError(OpenFolder().status(), "c.jpeg: label 1: expected 0 to 0");
  label_ = {"label", DType::kF32, {3, 3}};
  ExpectError(OpenFolder().status(), "labels are i64[B]");
  image_.dims = {4, 4, 4};
  ExpectError(OpenFolder().status(), "u8[B,3,H,W]");
}

TEST_F(PictureDataTest, FileList) {
  Write("deep/x y.png", Numbered(1));
  Write("z.png", Numbered(2));
  Write("deep/list.txt",
        absl::StrCat("\xef\xbb\xbf# all\nx y.png 1\n\n../z.png\t0\r\n", root_,
                     "/z.png 1\n"));
  const auto data = Open("filelist:" + root_ + "/deep/list.txt");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(Numbers(*data->train), ElementsAre(1, 2, 2));
  EXPECT_THAT(Labels(*data->train), ElementsAre(1, 0, 1));
  Write("bad.txt", "a.png 1\nb.png\n");
  ExpectError(Open("filelist:" + root_ + "/bad.txt").status(),
              "bad.txt:2: expected a path and a label");
  Write("bad.txt", "a.png 1 # one\n");
  ExpectError(Open("filelist:" + root_ + "/bad.txt").status(),
              "; a comment has a line of its own");
  Write("none.txt", "#\n");
  ExpectError(Open("filelist:" + root_ + "/none.txt").status(), "found none");
  Write("gone.txt", "not/there.png 1\n");
  const auto gone = Open("filelist:" + root_ + "/gone.txt");
  ASSERT_TRUE(gone.ok()) << gone.status();
  std::vector<uint8_t> out(48);
  ExpectError(gone->train->Read({0}, 0, absl::MakeSpan(out)), "not/there.png");
}

TEST_F(PictureDataTest, BrokenPicturesEndTheRunOrAreLeftOut) {
  WriteFolder();
  Write("train/cat/aa.png", "no picture");
  Write("train/dog/cut.png", Numbered(7).substr(0, 60));
  auto data = OpenFolder();
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<uint8_t> out(48);
  ExpectError(data->train->Read({1}, 0, absl::MakeSpan(out)), "cat/aa.png");
  DataOptions options;
  options.skip_broken = true;
  options.workers = 2;
  data = OpenFolder(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(Numbers(*data->train), ElementsAre(1, 2, 3));
  EXPECT_THAT(Labels(*data->train), ElementsAre(0, 0, 1));
  EXPECT_THAT(
      data->notes,
      ElementsAre(HasSubstr("or .png, left out: 1"), HasSubstr("aa.png"),
                  HasSubstr("cut.png"), "2 broken of 5 in train left out"));
}

TEST_F(PictureDataTest, WhatCannotBeReadIsNotBroken) {
  WriteFolder();
  fs::create_symlink(root_ + "/gone.png", root_ + "/train/cat/link.png");
  DataOptions options;
  options.skip_broken = true;
  ExpectError(OpenFolder(options).status(), "cat/link.png: cannot open");
  fs::remove(root_ + "/train/cat/link.png");
  options.augment.set_eval_resize(3);
  ExpectError(OpenFolder(options).status(),
              "eval_resize: expected 0, or 4 or more");
}

TEST_F(PictureDataTest, ClassesOfOtherData) {
  WriteFolder();
  DataOptions options;
  options.classes = {"bird", "cat", "dog"};
  label_.classes = 3;
  const auto data = OpenFolder(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(Labels(*data->train), ElementsAre(1, 1, 2));
  EXPECT_THAT(data->classes, ElementsAre("bird", "cat", "dog"));
  options.classes = {"bird", "dog"};
  ExpectError(OpenFolder(options).status(),
              "train/cat: a class that the training data lacks");
}

// Of two processes each finds its own; both leave out what both have found.
TEST_F(PictureDataTest, BrokenPicturesByShares) {
  WriteFolder();
  for (const char* name : {"cat/aa.png", "cat/ab.png", "dog/d.png"}) {
    Write(absl::StrCat("train/", name), "no picture");
  }
  Write("val/dog/e.png", "no picture");
  std::vector<BrokenSample> found;
  DataOptions options;
  options.skip_broken = true;
  options.processes = 2;
  for (options.process = 0; options.process < 2; ++options.process) {
    const auto data = OpenFolder(options);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->train->size(), 6);
    EXPECT_EQ(data->broken.size(), options.process == 0 ? 1u : 3u);
    found.insert(found.end(), data->broken.begin(), data->broken.end());
  }
  auto data = OpenFolder(options);
  ASSERT_TRUE(data.ok()) << data.status();
  data->broken = found;
  const absl::Status left = LeaveOut(&*data);
  ASSERT_TRUE(left.ok()) << left;
  EXPECT_THAT(Numbers(*data->train), ElementsAre(1, 2, 3));
  EXPECT_THAT(Labels(*data->train), ElementsAre(0, 0, 1));
  EXPECT_THAT(Numbers(*data->test), ElementsAre(4));
  EXPECT_EQ(data->left_out, 4);
  EXPECT_EQ(data->notes.back(), "1 broken of 2 in val left out");
  // Nothing is left.
  for (int64_t i = 0; i < 3; ++i) data->broken.push_back({false, i, "why"});
  ExpectError(LeaveOut(&*data), "all 3 pictures of train are broken; why");
}

TEST_F(PictureDataTest, MarksTellOtherPictures) {
  WriteFolder();
  Write("train/cat/aa.png", "no picture");
  DataOptions options;
  options.skip_broken = true;
  const std::string marks = OpenFolder(options)->train->Marks();
  const auto check = [&] {
    const auto data = OpenFolder(options);
    EXPECT_TRUE(data.ok()) << data.status();
    return data->train->CheckMarks(marks);
  };
  EXPECT_TRUE(check().ok()) << check();
  // One that is broken is none, and is one when it is mended.
  fs::remove(root_ + "/train/cat/aa.png");
  EXPECT_TRUE(check().ok()) << check();
  Write("train/cat/aa.png", Numbered(5));
  ExpectError(check(), "now there are 4: the first that differs is " + root_ +
                           "/train/cat/aa.png");
  fs::remove(root_ + "/train/cat/aa.png");
  fs::rename(root_ + "/train/cat/b.JPG", root_ + "/train/dog/b.JPG");
  ExpectError(check(), "train/dog/b.JPG");
}

// Of two labels one is taken, as often as its share says.
TEST_F(PictureDataTest, MixupOfClasses) {
  WriteFolder();
  DataOptions options;
  options.augmented = true;
  options.augment.set_mixup(1);
  const auto classes = OpenFolder(options);
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_THAT(classes->notes,
              ElementsAre(HasSubstr("no .jpg"), HasSubstr("one of its two")));
  label_ = {"label", DType::kF32, {2}};
  const auto both = OpenFolder(options);
  ASSERT_TRUE(both.ok()) << both.status();
  constexpr int64_t kEpochs = 4000;
  double shares = 0, labels = 0;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    float share[2];
    int64_t label = 0;
    ASSERT_TRUE(both->train
                    ->Read({2, epoch}, 1,
                           absl::MakeSpan(reinterpret_cast<uint8_t*>(share), 8))
                    .ok());
    ASSERT_TRUE(
        classes->train
            ->Read({2, epoch}, 1,
                   absl::MakeSpan(reinterpret_cast<uint8_t*>(&label), 8))
            .ok());
    shares += share[1];
    labels += static_cast<double>(label);
    // What is not mixed has its own.
    if (share[1] == 1) {
      EXPECT_EQ(label, 1);
    }
  }
  // A share of 3/4 on average, with a third of the others its own class: 5/6.
  EXPECT_NEAR(shares / kEpochs, 5.0 / 6, 0.02);
  // Three standard deviations of as many draws: 0.018.
  EXPECT_NEAR(labels / kEpochs, shares / kEpochs, 0.018);
}

TEST_F(PictureDataTest, MixupMixesTwo) {
  WriteFolder();
  DataOptions options;
  options.augmented = true;
  options.augment.set_mixup(1);
  label_ = {"label", DType::kF32, {2}};
  const auto data = OpenFolder(options);
  ASSERT_TRUE(data.ok()) << data.status();
  int mixed = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    float shares[2];
    std::vector<uint8_t> out(48);
    ASSERT_TRUE(data->train->Read({2, epoch}, 0, absl::MakeSpan(out)).ok());
    ASSERT_TRUE(
        data->train
            ->Read({2, epoch}, 1,
                   absl::MakeSpan(reinterpret_cast<uint8_t*>(shares), 8))
            .ok());
    EXPECT_NEAR(shares[0] + shares[1], 1, 1e-6);
    EXPECT_GE(shares[1], 0.5f);
    mixed += shares[0] > 0;
    // 30 times its share and 10 or 20 times the other's.
    EXPECT_LE(out[5], 31);
    EXPECT_GE(out[5], 30 * shares[1] + 10 * shares[0] - 2);
  }
  EXPECT_GT(mixed, 5);
  // Evaluation mixes nothing.
  float shares[2];
  ASSERT_TRUE(
      data->test
          ->Read({0}, 1, absl::MakeSpan(reinterpret_cast<uint8_t*>(shares), 8))
          .ok());
  EXPECT_EQ(shares[1], 1);
}

TEST_F(PictureDataTest, TarShards) {
  Write("s-00.tar",
        TarMember("a/", "", '5') + TarMember("a/1.png", Numbered(1)) +
            TarMember("a/1.cls", "1\n") + TarMember("a/1.json", "{}") +
            TarMember("../../2.x.cls", "0") + TarEnd() +
            std::string(100000, '\0'));
  Write("s-01.tar", TarMember("3.cls", "0") +
                        TarMember("3.jpg", Numbered(3, false)) +
                        TarMember("4.jpg", Numbered(4, false)) +
                        TarMember("4.cls", "1") + TarEnd());
  for (const char* pattern : {"/s-*.tar", "/s-{00..01}.tar"}) {
    const auto data = Open(absl::StrCat("tar:", root_, pattern));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_THAT(Numbers(*data->train), ElementsAre(1, 3, 4));
    EXPECT_THAT(Labels(*data->train), ElementsAre(1, 0, 1));
  }
}

TEST_F(PictureDataTest, WrongShards) {
  const auto expect = [&](const std::string& bytes, const std::string& what) {
    Write("s.tar", bytes);
    ExpectError(Open("tar:" + root_ + "/s.tar").status(), what);
  };
  const std::string good =
      TarMember("1.png", Numbered(1)) + TarMember("1.cls", "1");
  expect(TarMember("1.png", Numbered(1)) + TarMember("2.cls", "1") + TarEnd(),
         "member 1.png: expected its label beside it");
  expect(TarMember("1.png", Numbered(1)) + TarMember("1.cls", "cat") + TarEnd(),
         "expected a label (a number from 0), found \"cat\"");
  expect(TarMember("readme", "text") + TarEnd(), "found none");
  expect(TarMember("1.png", Numbered(1)) + TarMember("1.cls", "1") +
             TarMember("1.jpg", Numbered(2, false)) + TarEnd(),
         "expected one picture of a key, found 1.png");
  expect(TarMember("1.png", "", '1') + TarMember("1.cls", "1") + TarEnd(),
         "s.tar: ");
  expect(good + TarMember("1.cls", "2") + TarEnd(),
         "member 1.cls: expected one label of a key, found two");
  expect(
      good + TarMember("2.webp", "RIFF") + TarMember("2.cls", "1") + TarEnd(),
      "member 2.cls: expected its picture beside it");
  expect(good + TarEnd() + good + TarEnd(), "found more: several in one");
  // A bit of the second picture's name.
  std::string damaged = good + TarMember("2.png", Numbered(2)) +
                        TarMember("2.cls", "1") + TarEnd();
  damaged[good.size() + 1] ^= 1;
  expect(damaged, "s.tar: ");
  // Not the mask; and a picture without content is a broken one.
  Write("s.tar", TarMember("1.png", Numbered(1)) + TarMember("1.cls", "1") +
                     TarMember("1.mask.png", Numbered(2)) +
                     TarMember("Z\xc3\xbcrich.png", "") +
                     TarMember("Z\xc3\xbcrich.cls", "0") + TarEnd());
  const auto two = Open("tar:" + root_ + "/s.tar");
  ASSERT_TRUE(two.ok()) << two.status();
  ASSERT_EQ(two->train->size(), 2);
  std::vector<uint8_t> out(48);
  EXPECT_TRUE(two->train->Read({0}, 0, absl::MakeSpan(out)).ok());
  EXPECT_EQ(out[0], 10);
  ExpectError(
      two->train->Read({1}, 0, absl::MakeSpan(out)),
      "s.tar: member Z\xc3\xbcrich.png: expected a JPEG or PNG picture, "
      "found an empty file");
  expect(good.substr(0, 600), "s.tar: ");
  expect("\x1f\x8b\x08 packed", "expected a tar file that is not packed");
  // Cut off between two members, it lacks nothing but its end.
  expect(good, "expected the empty blocks that end a tar file");
  expect(std::string(3000, 'x'), "expected a tar file");
  ExpectError(Open("tar:" + root_ + "/none-*.tar").status(), "found none");
  ExpectError(Open("tar:" + root_ + "/{3..1}.tar").status(),
              "two rising numbers", ExitCode::kUsage);
  Write("s.tar", good.substr(0, 512 + 20));
  const auto data = Open("tar:" + root_ + "/s.tar");
  EXPECT_FALSE(data.ok());
}

TEST_F(PictureDataTest, ShardsCutOffUnderWay) {
  const std::string shard =
      TarMember("1.png", Numbered(1)) + TarMember("1.cls", "1") +
      TarMember("2.png", Numbered(2)) + TarMember("2.cls", "0") + TarEnd();
  Write("s.tar", shard);
  const auto data = Open("tar:" + root_ + "/s.tar");
  ASSERT_TRUE(data.ok()) << data.status();
  fs::resize_file(root_ + "/s.tar", shard.size() / 2);
  std::vector<uint8_t> out(48);
  EXPECT_TRUE(data->train->Read({0}, 0, absl::MakeSpan(out)).ok());
  ExpectError(data->train->Read({1}, 0, absl::MakeSpan(out)),
              "leave files as they are while a run reads them");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

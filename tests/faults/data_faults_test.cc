// IDX files, plain and gzip, that are damaged or do not fit the model: what
// the user of `run` sees, before a step is taken and anything is written.
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using Parts = std::vector<std::string>;

constexpr char kImages[] = "train-images-idx3-ubyte";
constexpr char kLabels[] = "train-labels-idx1-ubyte";

std::string Idx(const std::vector<int64_t>& dims, const std::string& data) {
  std::string bytes = {0, 0, 8, static_cast<char>(dims.size())};
  for (int64_t dim : dims) {
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(dim >> shift);
  }
  return bytes + data;
}

// 70 images of 2x2 and their labels, 0 to 9.
std::string Images(int n = 70) { return Idx({n, 2, 2}, std::string(4 * n, 9)); }
std::string Labels(int n = 70) {
  std::string labels(n, 0);
  for (int i = 0; i < n; ++i) labels[i] = static_cast<char>(i % 10);
  return Idx({n}, labels);
}

std::string Gzip(const std::string& content) {
  const std::string path = Scratch() + "/x.gz";
  gzFile file = gzopen(path.c_str(), "wb9");
  EXPECT_EQ(gzwrite(file, content.data(), content.size()),
            static_cast<int>(content.size()));
  gzclose(file);
  return ReadAll(path);
}

// A directory of sound data, plain or gzip.
class DataFaults : public ::testing::TestWithParam<bool> {
 protected:
  DataFaults() : directory_(Scratch()) {
    for (const char* split : {"train", "t10k"}) {
      Put(absl::StrCat(split, "-images-idx3-ubyte"), Images());
      Put(absl::StrCat(split, "-labels-idx1-ubyte"), Labels());
    }
  }
  bool packed() const { return GetParam(); }
  std::string PathOf(const std::string& name) const {
    return absl::StrCat(directory_, "/", name, packed() ? ".gz" : "");
  }
  void PutBytes(const std::string& name, const std::string& bytes) {
    WriteTo(PathOf(name), bytes);
  }
  void Put(const std::string& name, const std::string& content) {
    PutBytes(name, packed() ? Gzip(content) : content);
  }
  void ExpectNoData(const Parts& says, const Parts& flags = {}) {
    Parts command = {"run", Convnet(), "--data", "idx:" + directory_};
    command.insert(command.end(), flags.begin(), flags.end());
    ExpectRefusedAndNothingWritten(command, "--out", 1, says);
  }

  std::string directory_;
};

INSTANTIATE_TEST_SUITE_P(Idx, DataFaults, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "gzip" : "plain";
                         });

TEST_P(DataFaults, SoundDataIsTaken) {
  const Result run = Halftone(
      {"run", Convnet(), "--data", "idx:" + directory_, "--epochs", "1"});
  EXPECT_EQ(run.exit_code(), 0) << run.err;
}

TEST_P(DataFaults, ADamagedFile) {
  const std::string good = ReadAll(PathOf(kImages));
  for (const Damage& damage : AllDamages(good)) {
    // A plain file has no checksum: a flipped bit is another grey.
    if (damage.name == "one_flipped_bit" && !packed()) continue;
    SCOPED_TRACE(damage.name);
    std::filesystem::remove(PathOf(kImages));
    if (damage.missing) {
      ExpectNoData({absl::StrCat(kImages, ": no such file, nor "),
                    "names a folder with MNIST's four files"});
      continue;
    }
    PutBytes(kImages, damage.content);
    ExpectNoData({PathOf(kImages) + ": ", damage.name == "random" && !packed()
                                              ? "see --data"
                                          : damage.name == "blank" && !packed()
                                              ? "not an IDX file"
                                              : "fetch or pack it again"});
  }
}

TEST_P(DataFaults, AHeaderThatIsNotTrue) {
  Put(kImages, Idx({1024, 1024, 1024}, "few"));
  ExpectNoData({PathOf(kImages),
                "truncated: its header claims 1073741824 bytes of data, found "
                "3; fetch or pack it again"});
  Put(kImages, Images() + "more");
  ExpectNoData({"too long: its header claims 280 bytes of data, found more"});
  Put(kImages, Labels());
  ExpectNoData(
      {"expected images, 3 dims (samples x height x width), found "
       "70"});
  Put(kImages, Images());
  Put(kLabels, Images());
  ExpectNoData({PathOf(kLabels), "expected labels, 1 dim, found 70x2x2"});
  std::string floats = Images();
  floats[2] = 0x0d;
  Put(kImages, floats);
  ExpectNoData({"IDX type 0xd: expected unsigned bytes (0x8); convert it"});
}

// A gigabyte of zeros is a megabyte of gzip: no more is unpacked than the
// header claims.
TEST_P(DataFaults, AFileThatUnpacksToAGigabyte) {
  if (!packed()) GTEST_SKIP() << "of packed files";
  const std::string path = PathOf(kImages);
  gzFile file = gzopen(path.c_str(), "wb1");
  const std::string header = Images(), zeros(1 << 20, '\0');
  gzwrite(file, header.data(), header.size());
  for (int i = 0; i < 1 << 10; ++i) gzwrite(file, zeros.data(), zeros.size());
  gzclose(file);
  ExpectNoData({path, "too long: its header claims 280 bytes"});
}

// 60 million images of one pixel take 60 kB packed, and 47 GB resized.
TEST_P(DataFaults, AFileThatHonestlyClaimsTooMuch) {
  if (!packed()) GTEST_SKIP() << "of packed files";
  constexpr int kSamples = 60000000;
  Put(kImages, Idx({kSamples, 1, 1}, std::string(kSamples, '\0')));
  Put(kLabels, Idx({kSamples}, std::string(kSamples, '\0')));
  ExpectNoData({PathOf(kImages),
                "expected at most 100 times as much; if you "
                "trust the file, add --max-unpack 10"});
}

// 16 MiB are unpacked from any file, and not resized all at once.
TEST_P(DataFaults, ManySmallImagesTakeNoMoreThanThemselves) {
  constexpr int kSamples = 1000000;
  Put(kImages, Idx({kSamples, 1, 1}, std::string(kSamples, '\7')));
  Put(kLabels, Idx({kSamples}, std::string(kSamples, '\0')));
  // The limit ends the run: a million samples would take minutes.
  ExpectNoData({"the data has 1,000,000 training samples"},
               {"--batch-size", "2000000"});
}

TEST_P(DataFaults, WhatDoesNotFitTheModel) {
  std::string labels = Labels();
  labels[8 + 5] = 11;
  Put(kLabels, labels);
  ExpectNoData({PathOf(kLabels) +
                ": label 11 of sample 5: expected 0 to 9 (the model has 10 "
                "classes); take another model or other data"});
  Put(kLabels, Labels(69));
  ExpectNoData(
      {absl::StrCat(PathOf(kImages), ": 70 images, but ", PathOf(kLabels),
                    " has 69 labels; take both from the same set")});
  Put(kLabels, Labels());
  ExpectNoData({"train.batch_size 71: the data has 70 training samples",
                "with --batch-size"},
               {"--batch-size", "71"});
  ExpectNoData({"train.tail drop: the data has 70 training samples, none for "
                "each of 71 ranks"},
               {"--set", "train.tail=drop", "--ranks", "71"});
  Put(kImages, Images(0));
  Put(kLabels, Labels(0));
  ExpectNoData({PathOf(kImages) + ": expected images, found none"});
}

TEST_P(DataFaults, WhatIsNoFile) {
  const std::string path = PathOf(kImages);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  ExpectNoData({path, "expected a file, found a directory"});
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);  // nobody writes to it
  ExpectNoData({path, "expected a file, found a pipe"});
}

// Found by all threads and by all processes before the first step.
TEST_P(DataFaults, OnSeveralRanks) {
  PutBytes(kImages, "");
  ExpectNoData({"found an empty file"}, {"--ranks", "2"});
  const std::string out = Scratch();
  const Result launch = Halftone({"launch", "--ranks", "2", "run", Convnet(),
                                  "--data", "idx:" + directory_, "--out", out});
  EXPECT_EQ(launch.exit_code(), 1) << launch.err;
  EXPECT_EQ(launch.out, "");
  EXPECT_NE(launch.err.find("found an empty file"), std::string::npos)
      << launch.err;
  for (const std::string& file : FilesBelow(out)) {
    EXPECT_TRUE(file == "failure.json" || file.substr(0, 4) == "logs") << file;
  }
}

TEST(DataFlags, ThatNameNoData) {
  const auto refused = [](const std::string& data, int code,
                          const Parts& says) {
    ExpectRefusedAndNothingWritten({"run", Convnet(), "--data", data}, "--out",
                                   code, says);
  };
  refused("indx:models/digits", 2, {"unknown kind of data", "nearest: idx"});
  refused("synthetic:0", 2, {"expected synthetic or synthetic:SAMPLES"});
  refused("idx:nowhere", 1, {"nowhere/train-images-idx3-ubyte: no such file"});
}

}  // namespace
}  // namespace halftone

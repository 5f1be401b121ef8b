// What a net is fed is the same, to the byte, on any number of ranks and
// workers and from whatever step a run goes on: of pictures, augmented.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"
#include "runtime/data/batch_reader.h"
#include "runtime/data/dataset.h"
#include "runtime/data/image/image_testing.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kPictures = 11, kBatch = 4, kEpochs = 3;

// Where a run begins, and who reads.
struct Readers {
  int ranks = 1, workers = 1;
  int64_t epoch = 0, step = 0;
};

// A hash of all ranks' samples of a step, by (epoch, step).
using Hashes = std::map<std::pair<int64_t, int64_t>, std::string>;

class SameFeedsTest : public ::testing::Test {
 protected:
  SameFeedsTest()
      : root_(absl::StrCat(::testing::TempDir(), "/same.", getpid())) {
    std::string list;
    std::filesystem::create_directories(root_);
    for (int64_t i = 0; i < kPictures; ++i) {
      Image image = TestImage(20 + i, 31 - i);
      image.pixels[7] = static_cast<uint8_t>(i);
      const std::string name = absl::StrCat(i, i % 2 == 0 ? ".png" : ".jpg");
      Write(name, i % 2 == 0 ? EncodePng(image) : EncodeJpeg(image));
      absl::StrAppend(&list, name, " ", i, "\n");
    }
    Write("list.txt", list);
    options_.augmented = true;
    options_.seed = 5;
    options_.augment.mutable_random_resized_crop()->set_scale_min(0.1);
    options_.augment.mutable_color_jitter()->set_brightness(0.4);
    options_.augment.mutable_color_jitter()->set_contrast(0.4);
    options_.augment.mutable_color_jitter()->set_saturation(0.4);
    options_.augment.set_horizontal_flip(0.5);
    options_.augment.set_cutout(3);
    options_.augment.set_mixup(0.4);
  }
  ~SameFeedsTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(root_ + "/" + name, bytes).ok());
  }

  // Opened anew, as each process does.
  Hashes Read(const Readers& readers) const {
    std::map<std::pair<int64_t, int64_t>, std::string> feeds;
    for (int rank = 0; rank < readers.ranks; ++rank) {
      const auto data =
          OpenData("filelist:" + root_ + "/list.txt", feeds_, options_);
      EXPECT_TRUE(data.ok()) << data.status();
      SamplerOptions sampler;
      sampler.size = kPictures;
      sampler.batch = kBatch;
      sampler.world_size = readers.ranks;
      sampler.rank = rank;
      sampler.seed = 5;
      ReaderOptions options;
      options.workers = readers.workers;
      options.first_epoch = readers.epoch;
      options.first_step = readers.step;
      options.epochs = kEpochs;
      const auto reader =
          MakeBatchReader(data->train.get(), feeds_, sampler, options);
      while (true) {
        const auto batch = reader->Next();
        EXPECT_TRUE(batch.ok()) << batch.status();
        if (!batch.ok() || *batch == nullptr) break;
        std::string& all = feeds[{(*batch)->epoch, (*batch)->step}];
        // Sample by sample, since ranks have slices of each feed.
        for (size_t i = 0; i < (*batch)->share.indices.size(); ++i) {
          for (size_t f = 0; f < feeds_.size(); ++f) {
            const int64_t bytes = feeds_[f].bytes();
            all.append(
                reinterpret_cast<const char*>(&(*batch)->feeds[f][i * bytes]),
                bytes);
          }
        }
      }
    }
    Hashes hashes;
    for (const auto& [step, bytes] : feeds) {
      hashes[step] = absl::StrCat(bytes.size(), " ", Hex64(StableHash(bytes)));
    }
    return hashes;
  }

  const std::string root_;
  DataOptions options_;
  const std::vector<FeedSpec> feeds_ = {{"image", DType::kU8, {3, 8, 8}},
                                        {"label", DType::kF32, {kPictures}}};
};

TEST_F(SameFeedsTest, OnAnyRanksAndWorkersAndResumed) {
  const Hashes whole = Read({});
  ASSERT_EQ(whole.size(), 3u * kEpochs);
  // Steps differ, and epochs.
  std::map<std::string, int> different;
  for (const auto& [step, hash] : whole) ++different[hash];
  EXPECT_EQ(different.size(), whole.size());
  for (const auto& [ranks, workers] :
       {std::pair(1, 3), std::pair(2, 1), std::pair(3, 2), std::pair(5, 1)}) {
    EXPECT_EQ(Read({ranks, workers}), whole) << ranks << " ranks";
    const Hashes resumed = Read({ranks, workers, 1, 2});
    EXPECT_EQ(resumed, Hashes(whole.find({1, 2}), whole.end()))
        << ranks << " ranks, resumed";
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

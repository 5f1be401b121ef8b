#include "runtime/data/batch_reader.h"

#include <memory>
#include <string>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

// Sample i is the byte i; `bad` cannot be read.
class Bytes : public Dataset {
 public:
  explicit Bytes(int64_t size, int64_t bad = -1) : size_(size), bad_(bad) {}
  int64_t size() const override { return size_; }
  absl::Status Read(const SampleId& sample, int,
                    absl::Span<uint8_t> out) const override {
    const int64_t index = sample.index;
    if (index == bad_) return ModelError("sample ", index, " is damaged");
    out[0] = static_cast<uint8_t>(index);
    return absl::OkStatus();
  }
  std::string Description() const override { return "bytes"; }

 private:
  int64_t size_, bad_;
};

std::unique_ptr<BatchReader> Reader(const Dataset& data,
                                    const ReaderOptions& options,
                                    int world_size = 1, int rank = 0) {
  SamplerOptions sampler;
  sampler.size = data.size();
  sampler.batch = 4;
  sampler.world_size = world_size;
  sampler.rank = rank;
  sampler.shuffle = false;
  return MakeBatchReader(&data, {{"x", DType::kU8, {}, 0}}, sampler, options);
}

std::vector<std::vector<uint8_t>> All(BatchReader& reader) {
  std::vector<std::vector<uint8_t>> batches;
  while (true) {
    const auto batch = reader.Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok() || *batch == nullptr) return batches;
    batches.push_back((*batch)->feeds[0]);
  }
}

using Batches = std::vector<std::vector<uint8_t>>;

TEST(BatchReader, GivesBatchesInOrderWhateverTheWorkers) {
  const Bytes data(10);
  for (int workers : {1, 2, 5}) {
    ReaderOptions options;
    options.workers = workers;
    options.epochs = 2;
    auto reader = Reader(data, options);
    const Batches epoch = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
    Batches expected = epoch;
    expected.insert(expected.end(), epoch.begin(), epoch.end());
    EXPECT_EQ(All(*reader), expected) << workers << " workers";
    EXPECT_GE(reader->waited_seconds(), 0);
  }
}

TEST(BatchReader, StartsWhereARunGoesOn) {
  const Bytes data(10);
  ReaderOptions options;
  options.epochs = 2;
  options.first_epoch = 1;
  options.first_step = 2;
  EXPECT_EQ(All(*Reader(data, options)), Batches({{8, 9}}));
  options.first_epoch = 2;
  options.first_step = 0;
  EXPECT_EQ(All(*Reader(data, options)), Batches());
}

TEST(BatchReader, RanksWithoutSamplesGetEmptyBatches) {
  const Bytes data(1);
  EXPECT_EQ(All(*Reader(data, {}, 2, 0)), Batches({{0}}));
  EXPECT_EQ(All(*Reader(data, {}, 2, 1)), Batches({{}}));
}

TEST(BatchReader, AnErrorIsSaidAgain) {
  const Bytes data(12, /*bad=*/6);
  auto reader = Reader(data, {});
  EXPECT_TRUE(reader->Next().ok());
  for (int i = 0; i < 3; ++i) {
    const auto batch = reader->Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(ExitCodeOf(batch.status()), ExitCode::kModel);
    EXPECT_EQ(batch.status().message(), "sample 6 is damaged");
  }
}

TEST(BatchReader, EndsInTheMiddle) {
  const Bytes data(1000);
  for (int taken : {0, 1, 3}) {
    ReaderOptions options;
    options.workers = 3;
    options.epochs = 100;
    auto reader = Reader(data, options);
    for (int i = 0; i < taken; ++i) EXPECT_TRUE(reader->Next().ok());
  }
}

TEST(BatchReader, ABatchLivesUntilTheNextButOne) {
  const Bytes data(12);
  auto reader = Reader(data, {});
  const Batch* first = *reader->Next();
  EXPECT_NE(*reader->Next(), nullptr);
  EXPECT_EQ(first->feeds[0], std::vector<uint8_t>({0, 1, 2, 3}));
  EXPECT_EQ(first->step, 0);
}

// Of a feed that has no samples, every batch has all: also one of no samples.
TEST(BatchReader, WhatIsWholeIsInEveryBatch) {
  const Bytes data(10);
  FeedSpec whole;
  whole.name = "w";
  whole.dtype = DType::kU8;
  whole.dims = {3};
  whole.whole = true;
  SamplerOptions sampler;
  sampler.size = 10;
  sampler.batch = 4;
  sampler.world_size = 8;
  sampler.rank = 7;
  const auto reader = MakeBatchReader(&data, {whole}, sampler, {});
  EXPECT_EQ(All(*reader), Batches(3, std::vector<uint8_t>(3, 0)));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

// One sample of training data, on one core: a JPEG of 500 x 375 in 224 x 224,
// cropped and flipped at random, and a block of 1,024 tokens.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/image/image_testing.h"

namespace halftone {
namespace {

using runtime::DataOptions;
using runtime::FeedSpec;

constexpr int64_t kFiles = 32;

class Folder {
 public:
  Folder()
      : path_(absl::StrCat(std::filesystem::temp_directory_path().string(),
                           "/data_benchmark.", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, const std::string& content) {
    HT_CHECK(WriteFileAtomically(path_ + "/" + name, content).ok(),
             "a temporary file can be written");
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A picture with edges and noise, about as large a file as a photograph's.
runtime::Image Photograph(int64_t number) {
  runtime::Image image = runtime::TestImage(500, 375);
  uint32_t state = static_cast<uint32_t>(number) * 2654435761u + 1;
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    const bool edge = (i / 3 % 500 / 25 + i / 1500 / 25) % 2 == 0;
    image.pixels[i] = static_cast<uint8_t>(image.pixels[i] / 2 +
                                           (edge ? 60 : 0) + (state >> 28));
  }
  return image;
}

void ReadAll(benchmark::State& state, const runtime::OpenedData& data,
             const std::vector<FeedSpec>& feeds) {
  std::vector<std::vector<uint8_t>> out;
  for (const FeedSpec& feed : feeds) out.emplace_back(feed.bytes());
  runtime::SampleId at;
  for (auto step : state) {
    for (size_t f = 0; f < feeds.size(); ++f) {
      HT_CHECK(data.train->Read(at, static_cast<int>(f), absl::MakeSpan(out[f]))
                   .ok(),
               "a sample can be read");
    }
    if (++at.index == data.train->size()) at = {0, at.epoch + 1};
  }
  state.SetItemsProcessed(state.iterations());
}

void Pictures(benchmark::State& state, bool png) {
  Folder folder;
  std::string list;
  for (int64_t i = 0; i < kFiles; ++i) {
    const std::string name = absl::StrCat(i, png ? ".png" : ".jpg");
    folder.Write(name, png ? runtime::EncodePng(Photograph(i))
                           : runtime::EncodeJpeg(Photograph(i), {87}));
    absl::StrAppend(&list, name, " 0\n");
  }
  folder.Write("list.txt", list);
  DataOptions options;
  options.augmented = true;
  options.augment.mutable_random_resized_crop();
  options.augment.set_horizontal_flip(0.5);
  const std::vector<FeedSpec> feeds = {{"image", DType::kU8, {3, 224, 224}},
                                       {"label", DType::kI64, {}, 1000}};
  const auto data = runtime::OpenData(
      absl::StrCat("filelist:", folder.path(), "/list.txt"), feeds, options);
  HT_CHECK(data.ok(), "its own files can be opened");
  ReadAll(state, *data, feeds);
}

void Tokens(benchmark::State& state) {
  constexpr int64_t kTokens = int64_t{1} << 24, kBlock = 1024;
  Folder folder;
  folder.Write("t.bin", std::string(2 * kTokens, '\x07'));
  const std::vector<FeedSpec> feeds = {{"input_ids", DType::kI64, {kBlock}},
                                       {"label", DType::kI64, {kBlock}, 50257}};
  const auto data = runtime::OpenData(
      absl::StrCat("tokens:", folder.path(), "/t.bin"), feeds, {});
  HT_CHECK(data.ok(), "its own file can be opened");
  ReadAll(state, *data, feeds);
  state.SetBytesProcessed(state.iterations() * 2 * kBlock);
}

void Jpegs(benchmark::State& state) { Pictures(state, false); }
void Pngs(benchmark::State& state) { Pictures(state, true); }
BENCHMARK(Jpegs)->Unit(benchmark::kMicrosecond);
BENCHMARK(Pngs)->Unit(benchmark::kMicrosecond);
BENCHMARK(Tokens)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace halftone

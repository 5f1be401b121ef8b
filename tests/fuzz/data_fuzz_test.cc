// What a run trains on, damaged: pictures, tar shards, lists of files, files of
// tokens. IDX and .npz are in run_files_fuzz_test.cc.
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "proto/train.pb.h"
#include "runtime/data/dataset.h"
#include "runtime/data/image/image_testing.h"
#include "runtime/data/image/transform.h"
#include "runtime/data/tar_testing.h"
#include "tests/fuzz/fuzz.h"

namespace halftone {
namespace {

using runtime::Image;

// Every kind of picture that the decoders tell apart, small, so that headers
// are often hit.
std::vector<std::string> Jpegs() {
  std::vector<std::string> files;
  const Image image = runtime::TestImage(24, 17);
  files.push_back(runtime::EncodeJpeg(image));
  files.push_back(runtime::EncodeJpeg(runtime::TestImage(9, 40, 1)));
  runtime::JpegFile file;
  for (const int orientation : {3, 6}) {
    file.orientation = orientation;
    files.push_back(runtime::EncodeJpeg(image, file));
  }
  file = {};
  file.progressive = true;
  files.push_back(runtime::EncodeJpeg(image, file));
  file = {};
  file.inks = true;
  files.push_back(runtime::EncodeJpeg(image, file));
  file = {};
  file.across = 4;
  file.down = 1;
  files.push_back(runtime::EncodeJpeg(image, file));
  return files;
}

std::vector<std::string> Pngs() {
  Image image = runtime::TestImage(24, 17);
  std::vector<std::string> files;
  for (const bool interlaced : {false, true}) {
    runtime::PngFile file;
    file.interlaced = interlaced;
    files.push_back(runtime::EncodePng(image, file));
    file.alpha = true;
    files.push_back(runtime::EncodePng(image, file));
    file.bits = 16;
    files.push_back(runtime::EncodePng(runtime::TestImage(9, 9, 1), file));
  }
  for (uint8_t& pixel : image.pixels) pixel &= 0xc0;
  runtime::PngFile file;
  file.palette = true;
  files.push_back(runtime::EncodePng(image, file));
  return files;
}

// Chunks' checksums as their bytes are now: without, no mutation would get
// beyond the first of them.
std::string WithTrueSums(std::string png) {
  constexpr size_t kSignature = 8, kAround = 12;
  const auto number = [&png](size_t at) {
    uint32_t value = 0;
    for (size_t i = at; i < at + 4; ++i) {
      value = value << 8 | static_cast<uint8_t>(png[i]);
    }
    return value;
  };
  for (size_t at = kSignature; at + kAround <= png.size();) {
    const size_t length = number(at);
    if (length > png.size() - at - kAround) break;
    const auto sum = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(&png[at + 4]),
              static_cast<uInt>(length + 4)));
    for (int i = 0; i < 4; ++i) {
      png[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    }
    at += kAround + length;
  }
  return png;
}

runtime::Box AnyBox(int64_t width, int64_t height, std::mt19937_64& random) {
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % n);
  };
  runtime::Box box;
  box.x = below(width);
  box.y = below(height);
  box.width = 1 + below(width - box.x);
  box.height = 1 + below(height - box.y);
  return box;
}

// All that is done to a picture: the whole of it and a part of it decoded, and
// what training makes of it.
absl::Status ReadPicture(const std::string& bytes) {
  const auto open = [&bytes] {
    return runtime::OpenImage(bytes, "fuzz", runtime::kMaxUnpack);
  };
  HT_ASSIGN_OR_RETURN(const auto decoder, open());
  const int64_t width = decoder->width(), height = decoder->height();
  EXPECT_GE(width, 1);
  EXPECT_GE(height, 1);
  EXPECT_LE(width, runtime::kMostPixels / height);
  // Large ones are held to their claims above; here they only take time.
  if (width * height > 1000000) return absl::OkStatus();
  std::mt19937_64 random(bytes.size());
  absl::Status all;
  for (const bool whole : {true, false}) {
    runtime::Wanted wanted;
    wanted.box = whole ? runtime::Box{0, 0, width, height}
                       : AnyBox(width, height, random);
    wanted.channels = random() % 2 == 0 ? 3 : 1;
    wanted.least_width = whole ? width : 1 + static_cast<int64_t>(random() % 8);
    wanted.least_height =
        whole ? height : 1 + static_cast<int64_t>(random() % 8);
    HT_ASSIGN_OR_RETURN(const auto again, open());
    Image image;
    runtime::RealBox at;
    const absl::Status status = again->Decode(wanted, &image, &at);
    all.Update(status);
    if (!status.ok()) continue;
    EXPECT_EQ(image.channels, wanted.channels);
    EXPECT_GE(at.x, 0);
    EXPECT_GE(at.y, 0);
    EXPECT_LE(at.x + at.width, static_cast<double>(image.width) + 1);
    EXPECT_LE(at.y + at.height, static_cast<double>(image.height) + 1);
  }
  proto::Augment augment;
  augment.mutable_random_resized_crop()->set_scale_min(0.08);
  augment.mutable_random_resized_crop()->set_scale_max(1);
  augment.mutable_random_resized_crop()->set_ratio_min(0.75);
  augment.mutable_random_resized_crop()->set_ratio_max(1.3333);
  augment.mutable_color_jitter()->set_contrast(0.4);
  augment.mutable_color_jitter()->set_saturation(0.4);
  augment.set_cutout(3);
  runtime::SampleDraws draws(1, 2, static_cast<int64_t>(bytes.size()));
  Image image;
  all.Update(runtime::Augmented(*decoder, augment, {3, 8, 8}, draws, &image));
  return all;
}

TEST(DataFuzzTest, Jpegs) {
  for (const std::string& source : Jpegs()) {
    Fuzz(source, /*text=*/false, ExitCode::kModel, 1500, ReadPicture);
  }
}

TEST(DataFuzzTest, Pngs) {
  for (const std::string& source : Pngs()) {
    Fuzz(source, /*text=*/false, ExitCode::kModel, 1000,
         [](const std::string& content) -> absl::Status {
           HT_RETURN_IF_ERROR(ReadPicture(WithTrueSums(content)));
           return ReadPicture(content);
         });
  }
}

// Every sample of every feed.
absl::Status ReadAll(const std::string& source,
                     const std::vector<runtime::FeedSpec>& feeds) {
  HT_ASSIGN_OR_RETURN(const runtime::OpenedData data,
                      runtime::OpenData(source, feeds, {}));
  std::vector<uint8_t> out;
  for (const runtime::Dataset* const split :
       {data.train.get(), data.test.get()}) {
    for (int64_t i = 0; split != nullptr && i < split->size(); ++i) {
      for (size_t f = 0; f < feeds.size(); ++f) {
        out.resize(feeds[f].bytes());
        HT_RETURN_IF_ERROR(
            split->Read({i}, static_cast<int>(f), absl::MakeSpan(out)));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<runtime::FeedSpec> PictureFeeds() {
  return {{"image", DType::kU8, {3, 4, 4}}, {"label", DType::kI64, {}, 9}};
}

TEST(DataFuzzTest, TarShards) {
  const std::string path = Scratch() + "/shard.tar";
  const std::string png = runtime::EncodePng(runtime::TestImage(5, 4));
  // GNU's long name, and a link.
  const std::string shard =
      runtime::TarMember("a/", "", '5') + runtime::TarMember("a/1.png", png) +
      runtime::TarMember("a/1.cls", "8") +
      runtime::TarMember("././@LongLink", std::string(120, 'n') + ".png", 'L') +
      runtime::TarMember("n", png) +
      runtime::TarMember("././@LongLink", std::string(120, 'n') + ".cls", 'L') +
      runtime::TarMember("n", "0\n") + runtime::TarMember("l", "", '2') +
      runtime::TarEnd();
  for (const bool sums : {false, true}) {
    Fuzz(shard, /*text=*/false, ExitCode::kModel, 3000,
         [&](const std::string& content) {
           std::string mended = content;
           if (sums) runtime::FixTarSums(&mended);
           WriteTo(path, mended);
           return ReadAll("tar:" + path, PictureFeeds());
         });
  }
}

TEST(DataFuzzTest, FileLists) {
  const std::string root = Scratch();
  WriteTo(root + "/a b.png", runtime::EncodePng(runtime::TestImage(5, 4)));
  WriteTo(root + "/c.jpg", runtime::EncodeJpeg(runtime::TestImage(5, 4)));
  Fuzz("# pictures\na b.png 1\n\nc.jpg\t8\r\n./c.jpg 0\n", /*text=*/true,
       ExitCode::kModel, 3000, [&](const std::string& content) {
         WriteTo(root + "/list.txt", content);
         return ReadAll("filelist:" + root + "/list.txt", PictureFeeds());
       });
}

TEST(DataFuzzTest, Tokens) {
  std::vector<uint16_t> ids(101);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i);
  const std::string bytes(reinterpret_cast<const char*>(ids.data()),
                          2 * ids.size());
  for (const char* name : {"/train.bin", "/x.u32"}) {
    const std::string path = Scratch() + name;
    // Of u32 numbers the upper half is the next id.
    const bool wide = name[1] == 'x';
    Fuzz(wide ? bytes + std::string(2, '\0') : bytes, /*text=*/false,
         ExitCode::kModel, 3000, [&](const std::string& content) {
           WriteTo(path, content);
           return ReadAll("tokens:" + path,
                          {{"input_ids", DType::kI64, {4}},
                           {"label", DType::kI64, {4}, wide ? 0 : 300}});
         });
  }
}

}  // namespace
}  // namespace halftone

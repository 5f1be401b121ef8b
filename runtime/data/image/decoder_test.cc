#include "runtime/data/image/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/data/image/image_testing.h"
#include "runtime/data/image/resample.h"

namespace halftone {
namespace runtime {
namespace {

using testing::HasSubstr;

constexpr int64_t kMaxUnpack = 100;

absl::StatusOr<Image> Decode(const std::string& bytes, int channels = 3) {
  HT_ASSIGN_OR_RETURN(const auto decoder,
                      OpenImage(bytes, "picture", kMaxUnpack));
  Image image;
  RealBox box;
  const int64_t width = decoder->width(), height = decoder->height();
  HT_RETURN_IF_ERROR(decoder->Decode(
      {{0, 0, width, height}, channels, width, height}, &image, &box));
  EXPECT_EQ(box.x, 0);
  EXPECT_EQ(box.width, image.width);
  EXPECT_EQ(image.width, width);
  EXPECT_EQ(image.height, height);
  return image;
}

int Distance(const Image& a, const Image& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  int most = 0;
  for (size_t i = 0; i < std::min(a.pixels.size(), b.pixels.size()); ++i) {
    most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  }
  return most;
}

void ExpectNear(const absl::StatusOr<Image>& found, const Image& expected,
                int most) {
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_LE(Distance(*found, expected), most);
}

Image GrayOf(const Image& image) {
  Image gray;
  gray.Resize(image.width, image.height, 1);
  for (size_t i = 0; i < gray.pixels.size(); ++i) {
    gray.pixels[i] = LumaOf(image.pixels[3 * i], image.pixels[3 * i + 1],
                            image.pixels[3 * i + 2]);
  }
  return gray;
}

Image ColouredOf(const Image& gray) {
  Image image;
  image.Resize(gray.width, gray.height, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = gray.pixels[i / 3];
  }
  return image;
}

TEST(DecoderTest, Png) {
  const Image image = TestImage(13, 7), gray = TestImage(13, 7, 1);
  ExpectNear(Decode(EncodePng(image)), image, 0);
  ExpectNear(Decode(EncodePng(image, {16})), image, 0);
  ExpectNear(Decode(EncodePng(image, {8, /*alpha=*/true})), image, 0);
  ExpectNear(Decode(EncodePng(image, {8, false, /*palette=*/true})), image, 0);
  ExpectNear(Decode(EncodePng(image, {8, false, false, true})), image, 0);
  ExpectNear(Decode(EncodePng(gray)), ColouredOf(gray), 0);
  ExpectNear(Decode(EncodePng(gray, {16, true}), 1), gray, 0);
  ExpectNear(Decode(EncodePng(image), 1), GrayOf(image), 0);
  ExpectNear(Decode(EncodePng(TestImage(1, 1))), TestImage(1, 1), 0);
}

JpegFile Progressive() {
  JpegFile file;
  file.progressive = true;
  return file;
}
JpegFile Inks() {
  JpegFile file;
  file.inks = true;
  return file;
}
JpegFile Turned(int orientation) {
  JpegFile file;
  file.quality = 98;
  file.orientation = orientation;
  return file;
}

TEST(DecoderTest, Jpeg) {
  const Image image = TestImage(61, 43), gray = TestImage(61, 43, 1);
  ExpectNear(Decode(EncodeJpeg(image)), image, 8);
  ExpectNear(Decode(EncodeJpeg(image, Progressive())), image, 8);
  ExpectNear(Decode(EncodeJpeg(image, Inks())), image, 8);
  ExpectNear(Decode(EncodeJpeg(gray)), ColouredOf(gray), 4);
  ExpectNear(Decode(EncodeJpeg(gray), 1), gray, 4);
  ExpectNear(Decode(EncodeJpeg(image), 1), GrayOf(image), 8);
  ExpectNear(Decode(EncodeJpeg(TestImage(1, 1))), TestImage(1, 1), 8);
}

// As the EXIF standard's table of rows and columns says.
TEST(DecoderTest, PicturesStandUpright) {
  const Image upright = TestImage(48, 32);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    // Where the stored pixel (x, y) of the upright picture is.
    Image stored;
    const bool swapped = orientation >= 5;
    stored.Resize(swapped ? 32 : 48, swapped ? 48 : 32, 3);
    for (int64_t y = 0; y < stored.height; ++y) {
      for (int64_t x = 0; x < stored.width; ++x) {
        const int64_t right = 47 - x, bottom = 31 - y;
        const int64_t from[8][2] = {
            {x, y}, {right, y},  {right, bottom},  {x, bottom},
            {y, x}, {47 - y, x}, {47 - y, 31 - x}, {y, 31 - x}};
        const int64_t* at = from[orientation - 1];
        std::copy_n(upright.row(at[1]) + 3 * at[0], 3, stored.row(y) + 3 * x);
      }
    }
    SCOPED_TRACE(orientation);
    ExpectNear(Decode(EncodeJpeg(stored, Turned(orientation))), upright, 8);
  }
}

// A part, and one that is scaled down, are what the whole picture has there.
TEST(DecoderTest, Parts) {
  // A pixel's colour says where it is, to within 64.
  Image image;
  image.Resize(640, 480, 3);
  for (int64_t y = 0; y < 480; ++y) {
    for (int64_t x = 0; x < 640; ++x) {
      uint8_t* const to = image.row(y) + 3 * x;
      const auto wave = [](int64_t at) {
        return static_cast<uint8_t>(40 + 4 * std::abs(at % 64 - 32));
      };
      to[0] = wave(x);
      to[1] = wave(y);
      to[2] = wave(x + y);
    }
  }
  JpegFile upright;
  std::vector<std::string> files = {
      EncodePng(image), EncodePng(image, {8, false, false, true}),
      EncodeJpeg(image, Progressive()), EncodeJpeg(image, Turned(6))};
  for (const auto& [across, down] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(4, 1),
        std::pair(4, 2), std::pair(2, 4)}) {
    upright.across = across;
    upright.down = down;
    files.push_back(EncodeJpeg(image, upright));
  }
  for (const std::string& bytes : files) {
    const auto whole = Decode(bytes);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (const Box box : {Box{0, 0, 640, 480}, Box{100, 37, 200, 150},
                          Box{380, 300, 97, 101}, Box{3, 5, 400, 400}}) {
      for (const int64_t size : {400, 64, 20}) {
        auto decoder = OpenImage(bytes, "picture", kMaxUnpack);
        ASSERT_TRUE(decoder.ok()) << decoder.status();
        Box inside = box;
        inside.width = std::min(box.width, (*decoder)->width() - box.x);
        inside.height = std::min(box.height, (*decoder)->height() - box.y);
        Image part, found, expected;
        RealBox at;
        const absl::Status status =
            (*decoder)->Decode({inside, 3, size, size}, &part, &at);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_GE(at.x, 0);
        EXPECT_LE(at.x + at.width, static_cast<double>(part.width) + 0.5);
        EXPECT_LE(at.y + at.height, static_cast<double>(part.height) + 0.5);
        Resample(part, at, at, size, size, &found);
        const RealBox from = {static_cast<double>(inside.x),
                              static_cast<double>(inside.y),
                              static_cast<double>(inside.width),
                              static_cast<double>(inside.height)};
        Resample(*whole, from, from, size, size, &expected);
        EXPECT_LE(Distance(found, expected), 12) << size;
      }
    }
  }
}

// Of two samples of luma for one of colour, colours are as sharp as what is
// asked for, however the library scales.
TEST(DecoderTest, ColoursOfPartsAreNotHalvedTwice) {
  Image image;
  image.Resize(640, 480, 3);
  for (int64_t y = 0; y < 480; ++y) {
    for (int64_t x = 0; x < 640; ++x) {
      uint8_t* const to = image.row(y) + 3 * x;
      to[0] = (x / 4 + y / 4) % 2 == 0 ? 200 : 60;
      to[1] = 128;
      to[2] = (x / 4 + y / 4) % 2 == 0 ? 60 : 200;
    }
  }
  for (const auto& [across, down] : {std::pair(2, 1), std::pair(1, 2)}) {
    JpegFile file;
    file.quality = 98;
    file.across = across;
    file.down = down;
    const std::string bytes = EncodeJpeg(image, file);
    auto decoder = OpenImage(bytes, "picture", kMaxUnpack);
    ASSERT_TRUE(decoder.ok()) << decoder.status();
    const auto whole = Decode(bytes);
    ASSERT_TRUE(whole.ok()) << whole.status();
    Image part, found, expected;
    RealBox at;
    const absl::Status status =
        (*decoder)->Decode({{0, 0, 640, 480}, 3, 160, 120}, &part, &at);
    ASSERT_TRUE(status.ok()) << status;
    Resample(part, at, at, 160, 120, &found);
    const RealBox all = {0, 0, 640, 480};
    Resample(*whole, all, all, 160, 120, &expected);
    EXPECT_LE(Distance(found, expected), 24);
  }
}

void ExpectBroken(const std::string& bytes, const std::string& what) {
  const auto image = Decode(bytes);
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(ExitCodeOf(image.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(image.status().message()), HasSubstr("picture: "));
  EXPECT_THAT(std::string(image.status().message()), HasSubstr(what));
}

TEST(DecoderTest, BrokenPictures) {
  const std::string jpeg = EncodeJpeg(TestImage(200, 100));
  const std::string png = EncodePng(TestImage(200, 100));
  ExpectBroken("", "an empty file");
  ExpectBroken("GIF89a", "expected a JPEG or PNG");
  ExpectBroken(jpeg.substr(0, jpeg.size() / 2), "a broken JPEG");
  ExpectBroken(jpeg.substr(0, 30), "a broken JPEG");
  ExpectBroken(png.substr(0, png.size() / 2), "its data ends early");
  ExpectBroken(png.substr(0, 20), "its data ends early");
  // Each byte on its own: an error or a picture, never a crash.
  for (const std::string& good : {jpeg, png}) {
    for (size_t i = 0; i < good.size(); i += 17) {
      std::string bad = good;
      bad[i] = static_cast<char>(~bad[i]);
      const auto image = Decode(bad);
      if (!image.ok()) {
        EXPECT_EQ(ExitCodeOf(image.status()), ExitCode::kModel);
      }
    }
  }
}

// Headers that claim more than there can be.
TEST(DecoderTest, ClaimsAreChecked) {
  std::string jpeg = EncodeJpeg(TestImage(8, 8));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, jpeg.npos);
  jpeg.replace(frame + 5, 4, "\xc3\x50\xc3\x50");
  ExpectBroken(jpeg, "50000 x 50000");
  jpeg.replace(frame + 5, 4, "\x27\x10\x27\x10");
  ExpectBroken(jpeg, "--max-unpack");
  // 9,000 x 9,000 of one colour are 240 KB.
  Image bomb;
  bomb.Resize(9000, 9000, 1);
  ExpectBroken(EncodePng(bomb), "--max-unpack");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

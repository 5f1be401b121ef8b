#include "runtime/data/image/transform.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "runtime/data/image/formats.h"
#include "runtime/data/image/image_testing.h"
#include "runtime/data/image/resample.h"

namespace halftone {
namespace runtime {
namespace {

using Pixels = std::vector<uint8_t>;

Image Gray(int64_t width, int64_t height, Pixels pixels) {
  Image image;
  image.Resize(width, height, 1);
  image.pixels = std::move(pixels);
  return image;
}

Pixels Resampled(const Image& in, const RealBox& box, int64_t width,
                 int64_t height) {
  Image out;
  Resample(in, box, box, width, height, &out);
  return out.pixels;
}

// Image.crop(box).resize((w, h), Image.BILINEAR) of Pillow 13.
TEST(ResampleTest, AsPillow) {
  const Image in = Gray(5, 2, {0, 50, 100, 150, 200, 255, 205, 155, 105, 55});
  EXPECT_EQ(Resampled(in, {0, 0, 5, 2}, 5, 2), in.pixels);
  EXPECT_EQ(Resampled(in, {0, 0, 5, 2}, 10, 2),
            (Pixels{0,   13,  38,  63,  88,  113, 138, 163, 188, 200,
                    255, 243, 218, 193, 168, 143, 118, 93,  68,  55}));
  EXPECT_EQ(Resampled(in, {0, 0, 5, 2}, 2, 1), (Pixels{128, 128}));
  EXPECT_EQ(Resampled(in, {1, 0, 3, 1}, 2, 1), (Pixels{69, 131}));
  EXPECT_EQ(Resampled(Gray(1, 1, {7}), {0, 0, 1, 1}, 3, 2), Pixels(6, 7));
}

struct Opened {
  std::string bytes;
  std::unique_ptr<ImageDecoder> decoder;
};

Opened Open(const Image& image) {
  Opened opened;
  opened.bytes = EncodePng(image);
  auto decoder = OpenImage(opened.bytes, "picture", 100);
  EXPECT_TRUE(decoder.ok()) << decoder.status();
  opened.decoder = *std::move(decoder);
  return opened;
}

Image Cropped(const Image& image, int64_t eval_resize, const FeedImage& feed) {
  const Opened opened = Open(image);
  Image out;
  const absl::Status status =
      CentreCrop(*opened.decoder, eval_resize, feed, &out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

TEST(CentreCropTest, TheShortSideIsResizedAndTheCentreCut) {
  const Image image = TestImage(80, 40);
  // 40 x 40 of the middle.
  Image middle = Cropped(image, 0, {3, 40, 40});
  ASSERT_EQ(middle.pixels.size(), 40u * 40 * 3);
  for (int64_t y = 0; y < 40; ++y) {
    EXPECT_TRUE(
        std::equal(middle.row(y), middle.row(y) + 120, image.row(y) + 20 * 3));
  }
  // 40 to 80, and 40 x 40 of that: 20 x 20 pixels of the picture.
  const Image large = Cropped(image, 80, {3, 40, 40});
  EXPECT_NEAR(large.row(20)[0], image.row(20)[3 * 30], 3);
  EXPECT_NEAR(large.row(0)[1], image.row(10)[1], 3);
  EXPECT_EQ(Cropped(image, 0, {1, 20, 10}).channels, 1);
  EXPECT_EQ(Cropped(TestImage(1, 1), 0, {3, 8, 8}).pixels.size(), 192u);
}

// Compose([Resize(eval_resize), CenterCrop((height, width))]) of torchvision
// 0.26 on Pillow 13, of Image.fromarray of the same numbers: Pillow resizes
// rows first and rounds them, we do columns first, so that pixels may be one
// apart.
TEST(CentreCropTest, AsTorchvision) {
  const struct {
    int64_t width, height, eval_resize;
    FeedImage feed;
    Pixels pixels;
  } kCases[] = {
      {25, 19, 13, {1, 8, 8}, {109, 163, 124, 183, 136, 146, 133, 90,  147, 161,
                               127, 151, 152, 98,  123, 69,  110, 152, 140, 177,
                               100, 81,  156, 83,  97,  144, 100, 130, 165, 134,
                               110, 91,  92,  158, 127, 73,  77,  87,  104, 86,
                               190, 162, 128, 132, 145, 104, 60,  73,  133, 150,
                               177, 181, 95,  132, 172, 68,  103, 148, 177, 75,
                               85,  133, 139, 130}},
      {60, 41, 9, {1, 7, 7}, {111, 120, 119, 137, 126, 135, 134, 107, 122, 131,
                              146, 115, 136, 135, 133, 131, 130, 126, 116, 141,
                              126, 127, 123, 134, 121, 126, 130, 125, 118, 121,
                              127, 116, 119, 126, 131, 123, 138, 123, 121, 137,
                              132, 122, 137, 139, 144, 120, 130, 115, 112}},
      {31, 17, 17, {1, 6, 9}, {196, 43,  3,   106, 209, 169, 16,  232, 79,
                               152, 123, 94,  208, 179, 37,  8,   122, 93,
                               221, 203, 185, 54,  36,  161, 143, 125, 250,
                               34,  27,  20,  156, 149, 142, 22,  15,  8,
                               103, 107, 111, 2,   6,   10,  14,  161, 165,
                               172, 187, 202, 104, 119, 134, 149, 164, 179}},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.width);
    Image image;
    image.Resize(one.width, one.height, 1);
    for (int64_t y = 0; y < one.height; ++y) {
      for (int64_t x = 0; x < one.width; ++x) {
        image.row(y)[x] =
            static_cast<uint8_t>(x * 37 + y * 91 + x * y % 13 * 11);
      }
    }
    const Image found = Cropped(image, one.eval_resize, one.feed);
    ASSERT_EQ(found.pixels.size(), one.pixels.size());
    for (size_t i = 0; i < one.pixels.size(); ++i) {
      EXPECT_NEAR(found.pixels[i], one.pixels[i], 1) << i;
    }
  }
}

int Distance(const Image& a, const Image& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  int most = 0;
  for (size_t i = 0; i < std::min(a.pixels.size(), b.pixels.size()); ++i) {
    most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  }
  return most;
}

// Evaluation takes all pixels of a JPEG file, training fewer of a picture that
// it makes much smaller; how the picture lies in the file changes neither.
TEST(CentreCropTest, TakesAllPixelsOfAJpegFile) {
  Image image;
  image.Resize(333, 261, 3);
  uint32_t noise = 1;
  for (uint8_t& pixel : image.pixels) {
    noise = noise * 1664525 + 1013904223;
    pixel = static_cast<uint8_t>(noise >> 24);
  }
  const FeedImage feed = {3, 32, 32};
  Image evaluated, trained;
  for (const int orientation : {1, 2, 3, 4, 5, 6, 7, 8}) {
    SCOPED_TRACE(orientation);
    JpegFile file;
    file.orientation = orientation;
    const std::string bytes = EncodeJpeg(image, file);
    const auto open = [&bytes] {
      auto decoder = OpenImage(bytes, "picture", 100);
      EXPECT_TRUE(decoder.ok()) << decoder.status();
      return *std::move(decoder);
    };
    Image eval, train;
    ASSERT_TRUE(CentreCrop(*open(), 0, feed, &eval).ok());
    SampleDraws draws(1, 0, 0);
    ASSERT_TRUE(Augmented(*open(), {}, feed, draws, &train).ok());
    if (orientation == 1) {
      Image whole;
      RealBox box;
      ASSERT_TRUE(
          open()->Decode({{0, 0, 333, 261}, 3, 333, 261}, &whole, &box).ok());
      EXPECT_EQ(eval.pixels, Cropped(whole, 0, feed).pixels);
      EXPECT_GT(Distance(eval, train), 2);
      evaluated = eval;
      trained = train;
      continue;
    }
    Image turned = evaluated;
    TurnUpright(orientation, &turned);
    EXPECT_LE(Distance(eval, turned), 1);  // columns are rounded first
    turned = trained;
    TurnUpright(orientation, &turned);
    EXPECT_LE(Distance(train, turned), 1);
  }
}

Image Changed(const Image& image, const proto::Augment& augment, int64_t sample,
              const FeedImage& feed = {3, 32, 32}, int64_t epoch = 0) {
  const Opened opened = Open(image);
  SampleDraws draws(/*seed=*/5, epoch, sample);
  Image out;
  const absl::Status status =
      Augmented(*opened.decoder, augment, feed, draws, &out);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(out.width, feed.width);
  EXPECT_EQ(out.height, feed.height);
  return out;
}

TEST(AugmentedTest, NothingIsTheCentre) {
  const Image image = TestImage(48, 32);
  EXPECT_EQ(Changed(image, {}, 1).pixels,
            Cropped(image, 0, {3, 32, 32}).pixels);
}

TEST(AugmentedTest, FlipsAShareOfThePictures) {
  const Image image = TestImage(32, 32);
  proto::Augment augment;
  augment.set_horizontal_flip(0.25);
  int flipped = 0;
  constexpr int kPictures = 400;
  for (int i = 0; i < kPictures; ++i) {
    const Image out = Changed(image, augment, i);
    if (out.pixels == image.pixels) continue;
    ++flipped;
    for (int64_t x = 0; x < 32; ++x) {
      ASSERT_EQ(out.row(3)[3 * x + 1], image.row(3)[3 * (31 - x) + 1]);
    }
  }
  EXPECT_NEAR(flipped, kPictures / 4, 30);
}

// The parts' areas and ratios are those asked for: in a picture whose pixels
// tell where they come from, a part's corners are known.
TEST(AugmentedTest, CropsWithinScaleAndRatio) {
  const Image image = TestImage(200, 200);
  proto::Augment augment;
  proto::RandomResizedCrop& crop = *augment.mutable_random_resized_crop();
  crop.set_scale_min(0.2);
  crop.set_scale_max(0.5);
  double least = 1, most = 0;
  for (int i = 0; i < 200; ++i) {
    const Image out = Changed(image, augment, i, {3, 64, 64});
    const double width = (out.row(32)[3 * 60] - out.row(32)[3 * 4]) / 56.0 * 64;
    const double height = (out.row(60)[1] - out.row(4)[1]) / 56.0 * 64;
    const double area = width * height / (200.0 * 200), ratio = width / height;
    least = std::min(least, area);
    most = std::max(most, area);
    EXPECT_GT(ratio, 0.68);
    EXPECT_LT(ratio, 1.47);
  }
  EXPECT_NEAR(least, 0.2, 0.03);
  EXPECT_NEAR(most, 0.5, 0.05);
}

TEST(AugmentedTest, ColoursAndCutout) {
  const Image image = TestImage(32, 32);
  proto::Augment augment;
  augment.mutable_color_jitter()->set_brightness(0.5);
  double least = 9, most = 0;
  for (int i = 0; i < 100; ++i) {
    const double factor = Changed(image, augment, i).row(16)[0] / 120.0;
    least = std::min(least, factor * 120 / image.row(16)[0]);
    most = std::max(most, factor * 120 / image.row(16)[0]);
  }
  EXPECT_NEAR(least, 0.5, 0.06);
  EXPECT_NEAR(most, 1.5, 0.06);
  // Contrast moves pixels about the mean gray, saturation about their own.
  const uint8_t* const p = image.row(16) + 3 * 4;
  const double gray = LumaOf(p[0], p[1], p[2]);
  augment.mutable_color_jitter()->set_brightness(0);
  augment.mutable_color_jitter()->set_saturation(0.5);
  bool moved = false;
  for (int i = 0; i < 20; ++i) {
    const Image out = Changed(image, augment, i);
    const uint8_t* const q = out.row(16) + 3 * 4;
    const double factor = (q[1] - gray) / (p[1] - gray);
    EXPECT_NEAR(q[0], gray + factor * (p[0] - gray), 3);
    EXPECT_NEAR(q[2], gray + factor * (p[2] - gray), 3);
    EXPECT_TRUE(factor > 0.45 && factor < 1.55) << factor;
    moved = moved || std::abs(factor - 1) > 0.1;
  }
  EXPECT_TRUE(moved);
  augment.mutable_color_jitter()->set_saturation(0);
  augment.mutable_color_jitter()->set_contrast(0.2);
  const Image bright = Changed(image, augment, 1);
  const double factor = (bright.row(30)[1] - bright.row(2)[1]) /
                        static_cast<double>(image.row(30)[1] - image.row(2)[1]);
  EXPECT_TRUE(factor > 0.79 && factor < 1.21) << factor;
  EXPECT_NE(bright.pixels, image.pixels);
  EXPECT_NEAR((bright.row(20)[15] - bright.row(20)[75]) /
                  static_cast<double>(image.row(20)[15] - image.row(20)[75]),
              factor, 0.03);
  augment.clear_color_jitter();
  augment.set_cutout(8);
  for (int i = 0; i < 20; ++i) {
    const Image out = Changed(image, augment, i);
    int64_t gray = 0;
    for (size_t p = 0; p < out.pixels.size(); p += 3) {
      const bool cut = out.pixels[p] == 128 && out.pixels[p + 1] == 128 &&
                       out.pixels[p + 2] == 128;
      gray += cut;
      if (!cut) {
        ASSERT_EQ(out.pixels[p], image.pixels[p]);
      }
    }
    EXPECT_GE(gray, 16);
    EXPECT_LE(gray, 65);  // and one that the picture has
  }
}

TEST(AugmentedTest, IsAFunctionOfSeedEpochAndSample) {
  const Image image = TestImage(60, 50);
  proto::Augment augment;
  augment.mutable_random_resized_crop();
  augment.mutable_color_jitter()->set_saturation(0.3);
  EXPECT_EQ(Changed(image, augment, 3).pixels,
            Changed(image, augment, 3).pixels);
  EXPECT_NE(Changed(image, augment, 3).pixels,
            Changed(image, augment, 4).pixels);
  EXPECT_NE(Changed(image, augment, 3, {3, 32, 32}, 1).pixels,
            Changed(image, augment, 3, {3, 32, 32}, 2).pixels);
}

// Mean and variance of Beta(a, a): 1/2 and 1 / (4 (2a + 1)).
TEST(SampleDrawsTest, Beta) {
  for (const double a : {1e-12, 0.2, 1.0, 3.0}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      SampleDraws draws(1, 0, i);
      const double x = draws.SymmetricBeta(a);
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * a + 1)), 0.005);
  }
  SampleDraws draws(1, 0, 0);
  for (int i = 0; i < 1000; ++i) {
    const int64_t n = draws.Below(7);
    EXPECT_TRUE(n >= 0 && n < 7);
  }
}

TEST(TransformTest, Planes) {
  Image image;
  image.Resize(2, 1, 3);
  image.pixels = {1, 2, 3, 4, 5, 6};
  Pixels out(6);
  ToPlanes(image, out.data());
  EXPECT_EQ(out, (Pixels{1, 4, 2, 5, 3, 6}));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

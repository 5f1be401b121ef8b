// What becomes of a picture before a net sees it, and the random numbers that
// decide it.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_TRANSFORM_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_TRANSFORM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/train.pb.h"
#include "runtime/data/image/decoder.h"
#include "runtime/data/image/image.h"

namespace halftone {
namespace runtime {

// Numbers from [0, 1), the same for the same sample of an epoch on any rank,
// worker and machine.
class SampleDraws {
 public:
  SampleDraws(int64_t seed, int64_t epoch, int64_t sample);
  double Uniform();
  double Uniform(double low, double high) {
    return low + (high - low) * Uniform();
  }
  // From 0 to n - 1.
  int64_t Below(int64_t n);
  // Beta(a, a): Joehnk, "Erzeugung von betaverteilten und gammaverteilten
  // Zufallszahlen" (1964), for a of 1 or less; else by sorting out.
  double SymmetricBeta(double a);

 private:
  uint64_t key_;
  uint64_t epoch_, sample_;
  uint32_t next_ = 0;
};

// A picture in a feed's size: channels planes of height x width.
struct FeedImage {
  int channels = 3;
  int64_t height = 0, width = 0;
};

// Short side to `eval_resize` (the feed's size if it is 0), then the centre, of
// all pixels of the file: as torchvision's Resize and CenterCrop.
absl::Status CentreCrop(ImageDecoder& decoder, int64_t eval_resize,
                        const FeedImage& feed, Image* out);

// As `augment` says; what it leaves out does not happen, and in place of
// random_resized_crop it is the centre. Decoded in fewer pixels where a part is
// to become much smaller and the file's kind can, however the picture lies.
absl::Status Augmented(ImageDecoder& decoder, const proto::Augment& augment,
                       const FeedImage& feed, SampleDraws& draws, Image* out);

// [C, H, W].
void ToPlanes(const Image& image, uint8_t* out);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_TRANSFORM_H_

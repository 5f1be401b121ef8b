// Every picture of a source, decoded.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_SCAN_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_SCAN_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/image_source.h"

namespace halftone {
namespace runtime {

// A picture that cannot be decoded.
struct BrokenImage {
  int64_t index = 0;
  std::string why;  // names it
};

struct ImageScan {
  std::map<int64_t, int64_t> readable;  // pictures by label
  std::vector<BrokenImage> broken;      // in order
  // Of what can be read; 0 if nothing can.
  int64_t least_width = 0, least_height = 0, most_width = 0, most_height = 0;
  std::array<double, 3> mean = {};  // of all pixels' red, green, blue: 0 to 255

  int64_t count() const;
};

// Reads and decodes those whose position divided by `processes` leaves
// `process`, in `workers` threads. `on_progress` is told by the calling thread
// how many were begun. Errors: those of reading, and of too little memory,
// which say nothing of the pictures. With `to_the_end` files that cannot be
// read are named among the broken ones.
absl::StatusOr<ImageScan> ScanImages(
    const ImageSource& source, int workers, int64_t max_unpack, int process = 0,
    int processes = 1,
    const std::function<void(int64_t done)>& on_progress = nullptr,
    bool to_the_end = false);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_SCAN_H_

// Labelled pictures as files have them, before they are decoded.
#ifndef HALFTONE_RUNTIME_DATA_IMAGE_SOURCE_H_
#define HALFTONE_RUNTIME_DATA_IMAGE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// Thread-safe after opening.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  virtual int64_t Label(int64_t index) const = 0;
  // For messages: a path, or a member of one.
  virtual std::string Name(int64_t index) const = 0;
  // A hash of its label and of what it is called, wherever the data lies: the
  // same in another run on the same data.
  virtual uint64_t Key(int64_t index) const = 0;
  // The encoded picture, in `storage` or in memory of the source.
  virtual absl::StatusOr<absl::string_view> Read(
      int64_t index, std::string* storage) const = 0;
};

struct ImageSplits {
  std::unique_ptr<ImageSource> train;
  std::unique_ptr<ImageSource> test;  // null: there is none
  // By label; empty where labels are numbers without names.
  std::vector<std::string> classes;
  std::vector<std::string> notes;
};

// DIR/{train,val}/CLASS/*.{jpg,jpeg,png}, or DIR/CLASS/* as one split. Labels
// count the classes of train in order of their names. Errors (kModel): no
// classes, a class of train without pictures, a class in val that train lacks.
// If `classes` are given, labels count those, and no other may come.
absl::StatusOr<ImageSplits> OpenImageFolder(
    const std::string& place, const std::vector<std::string>& classes);

// A text file: a line per picture, its path (relative to the file's folder) and
// its label, a number from 0. One split.
absl::StatusOr<ImageSplits> OpenFileList(const std::string& place,
                                         const std::vector<std::string>&);

// Shards as WebDataset packs them: members KEY.jpg (jpeg, png) and KEY.cls (the
// label as text) beside each other, in tar files that are not packed. `place`
// is a glob, or holds {000..031}. One split.
absl::StatusOr<ImageSplits> OpenTarShards(const std::string& place,
                                          const std::vector<std::string>&);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_IMAGE_SOURCE_H_

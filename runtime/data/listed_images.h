// Files of pictures, by the million.
#ifndef HALFTONE_RUNTIME_DATA_LISTED_IMAGES_H_
#define HALFTONE_RUNTIME_DATA_LISTED_IMAGES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/data/image_source.h"

namespace halftone {
namespace runtime {

// Paths, one behind the other, and labels.
class ListedImages : public ImageSource {
 public:
  // Paths that are not absolute are below `folder`.
  explicit ListedImages(std::string folder) : folder_(std::move(folder)) {}
  void Add(absl::string_view path, int64_t label);

  int64_t size() const override { return static_cast<int64_t>(ends_.size()); }
  int64_t Label(int64_t index) const override { return labels_[index]; }
  std::string Name(int64_t index) const override;
  uint64_t Key(int64_t index) const override;
  absl::StatusOr<absl::string_view> Read(int64_t index,
                                         std::string* storage) const override;

 private:
  absl::string_view Path(int64_t index) const;

  std::string folder_;
  std::string paths_;
  std::vector<int64_t> ends_;  // in paths_
  std::vector<int32_t> labels_;
};

// ImageSource::Key of a picture that is called so.
uint64_t KeyOfImage(absl::string_view name, int64_t label);

// Whether a file's name ends as those of pictures do: .jpg, .jpeg, .png, in
// any case.
bool IsImageName(absl::string_view name);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_LISTED_IMAGES_H_

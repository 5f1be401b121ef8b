#include "runtime/data/listed_images.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {

// Larger ones are no pictures that decode to kMostPixels.
constexpr int64_t kMostFileBytes = int64_t{1} << 30;

void ListedImages::Add(absl::string_view path, int64_t label) {
  absl::StrAppend(&paths_, path);
  ends_.push_back(static_cast<int64_t>(paths_.size()));
  labels_.push_back(static_cast<int32_t>(label));
}

absl::string_view ListedImages::Path(int64_t index) const {
  const int64_t begin = index == 0 ? 0 : ends_[index - 1];
  return absl::string_view(paths_).substr(begin, ends_[index] - begin);
}

std::string ListedImages::Name(int64_t index) const {
  const absl::string_view path = Path(index);
  return absl::StartsWith(path, "/") ? std::string(path)
                                     : absl::StrCat(folder_, "/", path);
}

uint64_t ListedImages::Key(int64_t index) const {
  return KeyOfImage(Path(index), labels_[index]);
}

absl::StatusOr<absl::string_view> ListedImages::Read(
    int64_t index, std::string* storage) const {
  HT_ASSIGN_OR_RETURN(*storage, ReadFile(Name(index), kMostFileBytes));
  return absl::string_view(*storage);
}

uint64_t KeyOfImage(absl::string_view name, int64_t label) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  return StableHash(name) ^ (static_cast<uint64_t>(label) + 1) * kOdd;
}

bool IsImageName(absl::string_view name) {
  for (const char* suffix : {".jpg", ".jpeg", ".png"}) {
    if (absl::EndsWithIgnoreCase(name, suffix)) return true;
  }
  return false;
}

}  // namespace runtime
}  // namespace halftone

// A folder of classes, as torchvision's ImageFolder has it.
#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/data/image_source.h"
#include "runtime/data/listed_images.h"

namespace halftone {
namespace runtime {
namespace {

namespace fs = std::filesystem;

struct Listing {
  std::vector<std::string> folders, images;  // in order of their names
  int64_t others = 0;
};

// With readdir: a million std::filesystem::path take seconds.
absl::StatusOr<Listing> List(const std::string& folder) {
  Listing listing;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()),
                                                closedir);
  if (dir != nullptr) {
    errno = 0;
    while (const dirent* entry = readdir(dir.get())) {
      const absl::string_view name = entry->d_name;
      if (name[0] == '.') continue;
      const bool may_be_link =
          entry->d_type != DT_DIR && entry->d_type != DT_REG;
      const std::string path =
          may_be_link ? absl::StrCat(folder, "/", name) : "";
      std::error_code unknown;
      if (IsImageName(name)) {
        listing.images.emplace_back(name);
      } else if (entry->d_type == DT_DIR ||
                 (may_be_link && fs::is_directory(path, unknown))) {
        listing.folders.emplace_back(name);
      } else if (may_be_link && !fs::exists(path, unknown)) {
        // Without a class the labels of those behind it are others.
        return ModelError(path, ": expected a class's folder, found a link to ",
                          "what is not there; mount it, or remove the link");
      } else {
        ++listing.others;
      }
      errno = 0;
    }
  }
  if (errno != 0) {
    return ModelError(
        folder, ": expected a folder that can be read: ", std::strerror(errno));
  }
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.images.begin(), listing.images.end());
  return listing;
}

// `splits->classes`: of the split that was read before, whose labels hold;
// empty if this is the first one, which fills it.
absl::StatusOr<std::unique_ptr<ImageSource>> OpenSplit(
    const std::string& folder, ImageSplits* splits) {
  HT_ASSIGN_OR_RETURN(const Listing split, List(folder));
  std::vector<std::string>* const classes = &splits->classes;
  const bool first = classes->empty();
  int64_t others = 0;
  if (split.folders.empty()) {
    return ModelError(folder, ": expected a folder for each class, found none",
                      split.images.empty() ? "" : " (but pictures)",
                      "; put pictures into ", folder, "/CLASS/");
  }
  if (first) *classes = split.folders;
  auto images = std::make_unique<ListedImages>(folder);
  for (const std::string& name : split.folders) {
    const auto at = std::lower_bound(classes->begin(), classes->end(), name);
    if (at == classes->end() || *at != name) {
      return ModelError(
          folder, "/", name, ": a class that the training data lacks",
          NearestHint(name, *classes), "; take it out, or add it there");
    }
    HT_ASSIGN_OR_RETURN(const Listing files,
                        List(absl::StrCat(folder, "/", name)));
    if (first && files.images.empty()) {
      return ModelError(folder, "/", name,
                        ": expected pictures (.jpg, .jpeg, .png), found ",
                        "none; take the folder out if it is no class");
    }
    if (!files.folders.empty()) {
      return ModelError(folder, "/", name, ": expected pictures alone, found ",
                        "the folder ", files.folders[0],
                        "; move its pictures up");
    }
    others += files.others;
    for (const std::string& file : files.images) {
      images->Add(absl::StrCat(name, "/", file), at - classes->begin());
    }
  }
  if (images->size() == 0) {
    return ModelError(folder, ": expected pictures, found none");
  }
  if (others > 0) {
    splits->notes.push_back(absl::StrCat(
        folder, ": files that are no .jpg, .jpeg or .png, left out: ",
        WithCommas(others)));
  }
  return images;
}

}  // namespace

absl::StatusOr<ImageSplits> OpenImageFolder(
    const std::string& place, const std::vector<std::string>& classes) {
  ImageSplits splits;
  splits.classes = classes;
  std::error_code error;
  if (!fs::is_directory(place + "/train", error)) {
    if (fs::is_directory(place + "/val", error)) {
      return ModelError(place, ": expected train/ beside val/, found none");
    }
    HT_ASSIGN_OR_RETURN(splits.train, OpenSplit(place, &splits));
    return splits;
  }
  HT_ASSIGN_OR_RETURN(splits.train, OpenSplit(place + "/train", &splits));
  if (fs::is_directory(place + "/val", error)) {
    HT_ASSIGN_OR_RETURN(splits.test, OpenSplit(place + "/val", &splits));
  } else {
    splits.notes.push_back(
        absl::StrCat(place, " has no val/: nothing to evaluate on"));
  }
  return splits;
}

}  // namespace runtime
}  // namespace halftone

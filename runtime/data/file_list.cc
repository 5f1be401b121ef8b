// A list of pictures with their labels.
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "runtime/data/image_source.h"
#include "runtime/data/listed_images.h"

namespace halftone {
namespace runtime {

absl::StatusOr<ImageSplits> OpenFileList(const std::string& place,
                                         const std::vector<std::string>&) {
  HT_ASSIGN_OR_RETURN(const std::string text, ReadFile(place));
  std::string folder = std::filesystem::path(place).parent_path().string();
  if (folder.empty()) folder = ".";
  auto images = std::make_unique<ListedImages>(folder);
  int64_t number = 0;
  for (absl::string_view line :
       absl::StrSplit(WithoutByteOrderMark(text), '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    // A path may hold blanks: the label is what comes last.
    const size_t blank = line.find_last_of(" \t");
    int64_t label = -1;
    if (blank == line.npos ||
        !absl::SimpleAtoi(line.substr(blank + 1), &label) || label < 0 ||
        label > std::numeric_limits<int32_t>::max()) {
      return ModelError(place, ":", number,
                        ": expected a path and a label (a number from 0), ",
                        "found \"", absl::CHexEscape(line.substr(0, 100)), "\"",
                        absl::StrContains(line, '#')
                            ? "; a comment has a line of its own"
                            : "");
    }
    images->Add(absl::StripTrailingAsciiWhitespace(line.substr(0, blank)),
                label);
  }
  if (images->size() == 0) {
    return ModelError(place, ": expected lines of a path and a label, found ",
                      "none");
  }
  ImageSplits splits;
  splits.train = std::move(images);
  return splits;
}

}  // namespace runtime
}  // namespace halftone

// Shards of WebDataset: tar files of pictures and labels.
#include <archive.h>
#include <archive_entry.h>
#include <glob.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/error.h"
#include "runtime/data/image_source.h"
#include "runtime/data/listed_images.h"
#include "runtime/data/mapped_file.h"

namespace halftone {
namespace runtime {
namespace {

// Where a picture lies; its name is that of a member, never a path of ours.
struct Member {
  int32_t shard = 0;
  int32_t label = 0;
  absl::string_view bytes;
};

class TarImages : public ImageSource {
 public:
  absl::Status AddShard(const std::string& path);

  int64_t size() const override {
    return static_cast<int64_t>(members_.size());
  }
  int64_t Label(int64_t index) const override { return members_[index].label; }
  std::string Name(int64_t index) const override {
    const MappedFile& shard = *shards_[members_[index].shard];
    return absl::StrCat(shard.path(), ": member at byte ",
                        members_[index].bytes.data() - shard.bytes().data());
  }
  absl::StatusOr<absl::string_view> Read(int64_t index,
                                         std::string*) const override {
    return members_[index].bytes;
  }

 private:
  std::vector<std::unique_ptr<MappedFile>> shards_;
  std::vector<Member> members_;
};

// What has one key so far.
struct Sample {
  std::string key, picture_name;
  absl::string_view picture;
  int64_t label = -1;
};

class ShardReader {
 public:
  explicit ShardReader(const MappedFile& shard)
      : shard_(shard), archive_(archive_read_new()) {}
  ~ShardReader() { archive_read_free(archive_); }

  absl::Status Open();
  // False at the end. Only members that are files come.
  absl::StatusOr<bool> Next(std::string* name, absl::string_view* bytes);

 private:
  absl::Status Damaged(absl::string_view what) const {
    return ModelError(shard_.path(), ": ", what,
                      "; expected a tar file that is not packed, whole");
  }
  absl::Status Failed() const {
    const char* text = archive_error_string(archive_);
    return Damaged(text != nullptr ? text : "cannot be read");
  }
  // The member's content as it lies in the file.
  absl::StatusOr<absl::string_view> Content(int64_t size,
                                            const std::string& name);

  const MappedFile& shard_;
  archive* archive_;
};

absl::Status ShardReader::Open() {
  archive_read_support_format_tar(archive_);
  const absl::string_view bytes = shard_.bytes();
  const int code =
      archive_read_open_memory(archive_, bytes.data(), bytes.size());
  return code == ARCHIVE_OK ? absl::OkStatus() : Failed();
}

absl::StatusOr<absl::string_view> ShardReader::Content(
    int64_t size, const std::string& name) {
  const void* at = nullptr;
  size_t there = 0;
  la_int64_t offset = 0;
  const int code = archive_read_data_block(archive_, &at, &there, &offset);
  if (code != ARCHIVE_OK && code != ARCHIVE_EOF) return Failed();
  const absl::string_view bytes = shard_.bytes();
  const auto* begin = static_cast<const char*>(at);
  if (there < static_cast<size_t>(size) || offset != 0 ||
      begin < bytes.data() || begin + size > bytes.data() + bytes.size()) {
    return Damaged(absl::StrCat("member ", absl::CHexEscape(name),
                                " is cut off or has holes"));
  }
  return absl::string_view(begin, size);
}

absl::StatusOr<bool> ShardReader::Next(std::string* name,
                                       absl::string_view* bytes) {
  while (true) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(archive_, &entry);
    if (code == ARCHIVE_EOF) return false;
    // A warning is of a name that this locale cannot spell.
    if (code < ARCHIVE_WARN) return Failed();
    const char* path = archive_entry_pathname(entry);
    if (path == nullptr) continue;
    *name = path;
    if (archive_entry_hardlink(entry) != nullptr) {
      return ModelError(shard_.path(), ": member ", absl::CHexEscape(*name),
                        ": expected content, found a link; pack it with ",
                        "tar --hard-dereference");
    }
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    const int64_t size = archive_entry_size(entry);
    *bytes = {};
    if (size > 0) {
      HT_ASSIGN_OR_RETURN(*bytes, Content(size, *name));
    }
    return true;
  }
}

absl::Status TarImages::AddShard(const std::string& path) {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  const auto shard = static_cast<int32_t>(shards_.size());
  shards_.push_back(std::move(file));
  ShardReader reader(*shards_.back());
  HT_RETURN_IF_ERROR(reader.Open());
  Sample sample;
  const auto finish = [&]() -> absl::Status {
    if (sample.picture_name.empty()) return absl::OkStatus();
    if (sample.label < 0) {
      return ModelError(
          path, ": member ", absl::CHexEscape(sample.picture_name),
          ": expected its label beside it, in a member ",
          absl::CHexEscape(sample.key), ".cls, found none; pack both");
    }
    members_.push_back(
        {shard, static_cast<int32_t>(sample.label), sample.picture});
    return absl::OkStatus();
  };
  while (true) {
    std::string name;
    absl::string_view bytes;
    HT_ASSIGN_OR_RETURN(const bool more, reader.Next(&name, &bytes));
    if (!more) break;
    // The key ends at the first dot of the last part.
    const size_t slash = name.rfind('/');
    const size_t dot = name.find('.', slash == name.npos ? 0 : slash + 1);
    const std::string key = name.substr(0, dot);
    if (key != sample.key) {
      HT_RETURN_IF_ERROR(finish());
      sample = {};
      sample.key = key;
    }
    const absl::string_view ending = absl::string_view(name).substr(key.size());
    // KEY.mask.png is none.
    if (ending.rfind('.') == 0 && IsImageName(ending)) {
      if (!sample.picture_name.empty()) {
        return ModelError(path, ": member ", absl::CHexEscape(name),
                          ": expected one picture of a key, found ",
                          absl::CHexEscape(sample.picture_name),
                          " beside it; take one out");
      }
      sample.picture = bytes;
      sample.picture_name = name;
    } else if (ending == ".cls") {
      if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(bytes), &sample.label) ||
          sample.label < 0 ||
          sample.label > std::numeric_limits<int32_t>::max()) {
        return ModelError(path, ": member ", absl::CHexEscape(name),
                          ": expected a label (a number from 0), found \"",
                          absl::CHexEscape(bytes.substr(0, 40)), "\"");
      }
    }
  }
  return finish();
}

// shard-{000..031}.tar counts, with as many digits; all else is a glob.
absl::StatusOr<std::vector<std::string>> Expand(const std::string& pattern) {
  const size_t open = pattern.find('{'), dots = pattern.find("..", open),
               close = pattern.find('}', dots);
  if (open == pattern.npos || dots == pattern.npos || close == pattern.npos) {
    glob_t found = {};
    const int code = glob(pattern.c_str(), 0, nullptr, &found);
    std::vector<std::string> paths(found.gl_pathv,
                                   found.gl_pathv + found.gl_pathc);
    globfree(&found);
    if (code != 0) {
      return ModelError("tar:", pattern, ": expected tar files, found none");
    }
    return paths;
  }
  constexpr int64_t kMostShards = 1000000;
  const std::string low = pattern.substr(open + 1, dots - open - 1);
  const std::string high = pattern.substr(dots + 2, close - dots - 2);
  int64_t first = 0, last = 0;
  if (!absl::SimpleAtoi(low, &first) || !absl::SimpleAtoi(high, &last) ||
      first < 0 || last < first || last - first >= kMostShards) {
    return UsageError("--data tar:", pattern,
                      ": expected {FIRST..LAST}, two rising numbers");
  }
  std::vector<std::string> paths;
  for (int64_t i = first; i <= last; ++i) {
    paths.push_back(
        absl::StrCat(pattern.substr(0, open),
                     absl::StrFormat("%0*d", static_cast<int>(low.size()), i),
                     pattern.substr(close + 1)));
  }
  return paths;
}

}  // namespace

absl::StatusOr<ImageSplits> OpenTarShards(const std::string& place) {
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Expand(place));
  auto images = std::make_unique<TarImages>();
  for (const std::string& path : paths) {
    HT_RETURN_IF_ERROR(images->AddShard(path));
  }
  if (images->size() == 0) {
    return ModelError("tar:", place,
                      ": expected pictures (members KEY.jpg and ",
                      "KEY.cls), found none");
  }
  ImageSplits splits;
  splits.train = std::move(images);
  return splits;
}

}  // namespace runtime
}  // namespace halftone

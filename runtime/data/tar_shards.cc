// Shards of WebDataset: tar files of pictures and labels.
#include <archive.h>
#include <archive_entry.h>
#include <glob.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/error.h"
#include "runtime/data/data_file.h"
#include "runtime/data/image_source.h"
#include "runtime/data/listed_images.h"

namespace halftone {
namespace runtime {
namespace {

// Bytes of a label that are looked at.
constexpr int64_t kMostLabel = 40;

// Where a picture lies, and its name in TarImages::names_: that of a member,
// never a path of ours.
struct Member {
  int32_t shard = 0;
  int32_t label = 0;
  int64_t offset = 0, size = 0;
  int64_t name = 0;
  uint64_t key = 0;
};

class TarImages : public ImageSource {
 public:
  absl::Status AddShard(const std::string& path);

  int64_t size() const override {
    return static_cast<int64_t>(members_.size());
  }
  int64_t Label(int64_t index) const override { return members_[index].label; }
  std::string Name(int64_t index) const override {
    const Member& member = members_[index];
    return absl::StrCat(shards_[member.shard]->path(), ": member ",
                        &names_[member.name]);
  }
  uint64_t Key(int64_t index) const override { return members_[index].key; }
  absl::StatusOr<absl::string_view> Read(int64_t index,
                                         std::string* storage) const override {
    const Member& member = members_[index];
    storage->resize(member.size);
    HT_RETURN_IF_ERROR(
        shards_[member.shard]->ReadAt(member.offset, absl::MakeSpan(*storage)));
    return *storage;
  }

 private:
  std::vector<std::unique_ptr<DataFile>> shards_;
  std::vector<Member> members_;
  std::string names_;  // each ends with a 0
};

// What has one key so far.
struct Sample {
  std::string key, picture_name;
  Member picture;
  int64_t label = -1;
};

// The members of a shard that are files.
class ShardReader {
 public:
  explicit ShardReader(const DataFile& shard)
      : shard_(shard), archive_(archive_read_new()) {}
  ~ShardReader() { archive_read_free(archive_); }

  absl::Status Open();
  // False at the end.
  absl::StatusOr<bool> Next(std::string* name, int64_t* offset, int64_t* size);

 private:
  absl::Status Failed() const {
    const char* text = archive_error_string(archive_);
    return ModelError(shard_.path(), ": ",
                      text != nullptr ? text : "cannot be read",
                      "; expected a tar file, whole");
  }
  absl::Status CheckEnd() const;

  const DataFile& shard_;
  archive* archive_;
};

absl::Status ShardReader::Open() {
  constexpr size_t kRead = 1 << 16;
  char magic[6] = "";
  HT_RETURN_IF_ERROR(shard_.ReadAt(
      0, absl::MakeSpan(magic, std::min<int64_t>(shard_.size(), 6))));
  const absl::string_view begin(magic, sizeof(magic));
  // A picture in it could only be reached through all before it.
  for (const absl::string_view packed : {"\x1f\x8b", "\x28\xb5\x2f\xfd",
                                         "\xfd"
                                         "7zXZ",
                                         "BZh"}) {
    if (!absl::StartsWith(begin, packed)) continue;
    return ModelError(shard_.path(), ": expected a tar file that is not ",
                      "packed, found one that is; unpack it (gunzip, unzstd, ",
                      "unxz, bunzip2): pictures are packed already");
  }
  archive_read_support_format_tar(archive_);
  const int code = archive_read_open_fd(archive_, shard_.descriptor(), kRead);
  return code == ARCHIVE_OK ? absl::OkStatus() : Failed();
}

// Empty blocks end an archive; one that was cut off between two members lacks
// nothing else.
absl::Status ShardReader::CheckEnd() const {
  char block[512] = "";
  const int64_t at = shard_.size() - static_cast<int64_t>(sizeof(block));
  if (at >= 0) HT_RETURN_IF_ERROR(shard_.ReadAt(at, absl::MakeSpan(block)));
  const auto is_empty = [](absl::Span<const char> bytes) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](char c) { return c == 0; });
  };
  if (at < 0 || !is_empty(block)) {
    return ModelError(shard_.path(),
                      ": expected the empty blocks that end a tar ",
                      "file, found none: it is cut off or not written to its ",
                      "end; pack it again");
  }
  std::vector<char> rest(1 << 16);
  for (int64_t next = archive_filter_bytes(archive_, 0); next < shard_.size();
       next += rest.size()) {
    const auto part = absl::MakeSpan(rest).subspan(
        0, std::min<int64_t>(shard_.size() - next, rest.size()));
    HT_RETURN_IF_ERROR(shard_.ReadAt(next, part));
    if (is_empty(part)) continue;
    return ModelError(
        shard_.path(), ": expected the end of the file behind the blocks that ",
        "end a tar file, found more: several in one; unpack them ",
        "(tar -i) and pack one");
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ShardReader::Next(std::string* name, int64_t* offset,
                                       int64_t* size) {
  while (true) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(archive_, &entry);
    if (code == ARCHIVE_EOF) {
      HT_RETURN_IF_ERROR(CheckEnd());
      return false;
    }
    // A warning is of a name that this locale cannot spell. (ARCHIVE_RETRY: a
    // header was damaged, and the next one would follow.)
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Failed();
    const char* path = archive_entry_pathname(entry);
    if (path == nullptr) continue;
    *name = path;
    if (archive_entry_hardlink(entry) != nullptr) {
      return ModelError(shard_.path(), ": member ", absl::CHexEscape(*name),
                        ": expected content, found a link; pack it with ",
                        "tar --hard-dereference");
    }
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    // What was read up to here is its header, the last.
    *offset = archive_filter_bytes(archive_, 0);
    *size = archive_entry_size(entry);
    if (archive_entry_sparse_count(entry) == 0 && *size >= 0 && *offset >= 0 &&
        *size <= shard_.size() - *offset) {
      return true;
    }
    return ModelError(shard_.path(), ": member ", absl::CHexEscape(*name),
                      " is cut off or has holes; expected a tar file, whole");
  }
}

absl::Status TarImages::AddShard(const std::string& path) {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<DataFile> file, DataFile::Open(path));
  const auto shard = static_cast<int32_t>(shards_.size());
  shards_.push_back(std::move(file));
  ShardReader reader(*shards_.back());
  HT_RETURN_IF_ERROR(reader.Open());
  Sample sample;
  const auto finish = [&]() -> absl::Status {
    if (sample.picture_name.empty() && sample.label >= 0) {
      return ModelError(
          path, ": member ", absl::CHexEscape(sample.key),
          ".cls: expected its picture beside it, a .jpg, .jpeg or .png, found ",
          "none; pack both or none");
    }
    if (sample.picture_name.empty()) return absl::OkStatus();
    if (sample.label < 0) {
      return ModelError(
          path, ": member ", absl::CHexEscape(sample.picture_name),
          ": expected its label beside it, in a member ",
          absl::CHexEscape(sample.key), ".cls, found none; pack both");
    }
    sample.picture.label = static_cast<int32_t>(sample.label);
    sample.picture.key =
        KeyOfImage(absl::StrCat(sample.picture_name, " ", sample.picture.size),
                   sample.label);
    sample.picture.name = static_cast<int64_t>(names_.size());
    names_.append(sample.picture_name.c_str(), sample.picture_name.size() + 1);
    members_.push_back(sample.picture);
    return absl::OkStatus();
  };
  while (true) {
    std::string name;
    Member member = {shard, 0};
    HT_ASSIGN_OR_RETURN(const bool more,
                        reader.Next(&name, &member.offset, &member.size));
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
      sample.picture = member;
      sample.picture_name = name;
    } else if (ending == ".cls") {
      std::string text(std::min(member.size, kMostLabel), '\0');
      HT_RETURN_IF_ERROR(
          shards_.back()->ReadAt(member.offset, absl::MakeSpan(text)));
      if (sample.label >= 0) {
        return ModelError(path, ": member ", absl::CHexEscape(name),
                          ": expected one label of a key, found two; take one ",
                          "out");
      }
      if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &sample.label) ||
          sample.label < 0 ||
          sample.label > std::numeric_limits<int32_t>::max()) {
        return ModelError(path, ": member ", absl::CHexEscape(name),
                          ": expected a label (a number from 0), found \"",
                          absl::CHexEscape(text), "\"");
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

absl::StatusOr<ImageSplits> OpenTarShards(const std::string& place,
                                          const std::vector<std::string>&) {
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

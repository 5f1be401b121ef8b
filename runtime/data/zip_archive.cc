#include "runtime/data/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/data/unpack.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56,
                 kEntryBytes = 46, kLocalBytes = 30;
constexpr size_t kLongestComment = 65535;
constexpr uint64_t kIn64Bits = 0xffffffff;  // see the 64-bit extension
constexpr uint16_t kExtra64 = 1, kEncrypted = 1;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr char kEndMark[] = "PK\x05\x06", kEnd64Mark[] = "PK\x06\x06",
               kLocatorMark[] = "PK\x06\x07", kEntryMark[] = "PK\x01\x02",
               kLocalMark[] = "PK\x03\x04";

template <typename T>
T At(absl::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Where the directory is.
struct Directory {
  uint64_t offset = 0, bytes = 0;
};

// The position of the record at the end, behind which only its comment is.
size_t FindEnd(absl::string_view content) {
  if (content.size() < kEndBytes) return absl::string_view::npos;
  const size_t last = content.size() - kEndBytes;
  const size_t first = last - std::min(last, kLongestComment);
  for (size_t at = last + 1; at-- > first;) {
    const absl::string_view record = content.substr(at);
    if (absl::StartsWith(record, kEndMark) &&
        at + kEndBytes + At<uint16_t>(record, 20) <= content.size()) {
      return at;
    }
  }
  return absl::string_view::npos;
}

// The record of the 64-bit extension before the one at `end`; false: there
// is one, and it is damaged.
bool FindDirectory64(absl::string_view content, size_t end,
                     Directory* directory) {
  if (end < kLocatorBytes) return true;
  const absl::string_view locator = content.substr(end - kLocatorBytes);
  if (!absl::StartsWith(locator, kLocatorMark)) return true;
  const auto at = At<uint64_t>(locator, 8);
  if (at > content.size() || content.size() - at < kEnd64Bytes) return false;
  const absl::string_view record = content.substr(at);
  if (!absl::StartsWith(record, kEnd64Mark)) return false;
  *directory = {At<uint64_t>(record, 48), At<uint64_t>(record, 40)};
  return true;
}

// Sizes that did not fit into the entry itself; false: damaged.
bool ReadExtra(absl::string_view extra, ZipArchive::Member* member) {
  std::vector<uint64_t*> wide;
  for (uint64_t* field : {&member->size, &member->packed, &member->offset}) {
    if (*field == kIn64Bits) wide.push_back(field);
  }
  if (wide.empty()) return true;
  while (extra.size() >= 4) {
    const auto id = At<uint16_t>(extra, 0);
    const size_t bytes = At<uint16_t>(extra, 2);
    if (extra.size() - 4 < bytes) return false;
    if (id == kExtra64) {
      if (bytes < 8 * wide.size()) return false;
      for (size_t i = 0; i < wide.size(); ++i) {
        *wide[i] = At<uint64_t>(extra, 4 + 8 * i);
      }
      return true;
    }
    extra.remove_prefix(4 + bytes);
  }
  return false;
}

// All of `packed` inflates to exactly `*out`.
bool Inflate(absl::string_view packed, std::string* out) {
  constexpr size_t kMost = std::numeric_limits<uInt>::max();
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) return false;
  size_t taken = 0, made = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t in = std::min(packed.size() - taken, kMost);
    const size_t room = std::min(out->size() - made, kMost);
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    Bytef none = 0;  // zlib wants a place even for nothing
    stream.next_out =
        room > 0 ? reinterpret_cast<Bytef*>(&(*out)[made]) : &none;
    stream.avail_out = static_cast<uInt>(room);
    result = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += room - stream.avail_out;
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END && made == out->size() &&
         taken == packed.size();
}

}  // namespace

absl::Status ZipArchive::Damaged(absl::string_view what) const {
  return ModelError(file_, ": truncated or damaged: ", what,
                    "; fetch or save it again");
}

absl::StatusOr<ZipArchive> ZipArchive::Parse(absl::string_view content,
                                             absl::string_view file) {
  ZipArchive archive(content, file);
  HT_RETURN_IF_ERROR(archive.ReadDirectory());
  return archive;
}

absl::Status ZipArchive::ReadDirectory() {
  const size_t end = FindEnd(content_);
  if (end == absl::string_view::npos) {
    if (absl::StartsWith(content_, kLocalMark)) {
      return Damaged("the zip file has no directory at its end");
    }
    return ModelError(file_, ": not a zip file, which an .npz is; save it ",
                      "with numpy.savez(file, name=array, ...)");
  }
  const absl::string_view record = content_.substr(end);
  Directory directory{At<uint32_t>(record, 16), At<uint32_t>(record, 12)};
  if (!FindDirectory64(content_, end, &directory) || directory.offset > end ||
      directory.bytes > end - directory.offset) {
    return Damaged("the zip file's directory is not where it should be");
  }
  absl::string_view left = content_.substr(directory.offset, directory.bytes);
  while (!left.empty()) {
    if (left.size() < kEntryBytes || !absl::StartsWith(left, kEntryMark)) {
      return Damaged("an entry of the zip file's directory");
    }
    const size_t name = At<uint16_t>(left, 28), extra = At<uint16_t>(left, 30);
    const size_t bytes = kEntryBytes + name + extra + At<uint16_t>(left, 32);
    Member member;
    member.flags = At<uint16_t>(left, 8);
    member.method = At<uint16_t>(left, 10);
    member.crc = At<uint32_t>(left, 16);
    member.packed = At<uint32_t>(left, 20);
    member.size = At<uint32_t>(left, 24);
    member.offset = At<uint32_t>(left, 42);
    if (left.size() < bytes ||
        !ReadExtra(left.substr(kEntryBytes + name, extra), &member)) {
      return Damaged("an entry of the zip file's directory");
    }
    member.name = std::string(left.substr(kEntryBytes, name));
    members_.push_back(std::move(member));
    left.remove_prefix(bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> ZipArchive::Packed(
    const Member& member) const {
  const auto damaged = [&] {
    return Damaged(absl::StrCat("member ", member.name));
  };
  if (member.offset > content_.size()) return damaged();
  absl::string_view rest = content_.substr(member.offset);
  if (rest.size() < kLocalBytes || !absl::StartsWith(rest, kLocalMark)) {
    return damaged();
  }
  const size_t header =
      kLocalBytes + At<uint16_t>(rest, 26) + At<uint16_t>(rest, 28);
  if (rest.size() < header || rest.size() - header < member.packed) {
    return damaged();
  }
  return rest.substr(header, member.packed);
}

absl::StatusOr<absl::string_view> ZipArchive::Read(
    const Member& member, int64_t max_unpack, std::string* unpacked) const {
  const std::string name = absl::StrCat(file_, ": ", member.name);
  if ((member.flags & kEncrypted) != 0) {
    return ModelError(name, ": encrypted; save it without a password");
  }
  if (member.method != kStored && member.method != kDeflated) {
    return ModelError(name, ": packed by method ", member.method,
                      ": expected stored or deflated members, as numpy.savez ",
                      "and numpy.savez_compressed write them");
  }
  HT_ASSIGN_OR_RETURN(absl::string_view bytes, Packed(member));
  bool whole = bytes.size() == member.size;
  if (member.method == kDeflated) {
    if (member.size > uint64_t{1} << 62) return Damaged(member.name);
    HT_RETURN_IF_ERROR(CheckUnpacked(static_cast<int64_t>(member.size),
                                     static_cast<int64_t>(member.packed), name,
                                     max_unpack));
    unpacked->resize(member.size);
    whole = Inflate(bytes, unpacked);
    bytes = *unpacked;
  }
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  if (!whole || crc32_z(0, data, bytes.size()) != member.crc) {
    return Damaged(absl::StrCat(
        "member ", member.name,
        whole ? " does not have its checksum" : " does not have its size"));
  }
  return bytes;
}

}  // namespace runtime
}  // namespace halftone

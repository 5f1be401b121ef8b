#include "runtime/data/npz_testing.h"

#include <zlib.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "graph/base/check.h"

namespace halftone {
namespace runtime {
namespace {

template <typename T>
void Put(T value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Deflate(const std::string& content) {
  z_stream stream{};
  HT_CHECK(
      deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK,
      "zlib");
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(&packed[0]);
  stream.avail_out = static_cast<uInt>(packed.size());
  HT_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// What both headers of a member have.
void PutCommon(const ZipFile::Member& member, const std::string& packed,
               std::string* to) {
  const auto& content = member.content;
  Put<uint16_t>(45, to);  // version needed
  Put<uint16_t>(0, to);   // flags
  Put<uint16_t>(member.deflate ? 8 : 0, to);
  Put<uint32_t>(0, to);  // time and date
  Put<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(content.data()),
                      static_cast<uInt>(content.size())),
                to);
  const bool wide = member.in_64_bits;
  Put<uint32_t>(wide ? 0xffffffff : packed.size(), to);
  Put<uint32_t>(wide ? 0xffffffff : content.size(), to);
  Put<uint16_t>(member.name.size(), to);
}

}  // namespace

std::string NpyFile::Serialize() const {
  std::string header =
      absl::StrCat("{'descr': '", descr,
                   "', 'fortran_order': ", fortran_order ? "True" : "False",
                   ", 'shape': (", shape, "), }\n");
  std::string npy("\x93NUMPY", 6);
  npy += static_cast<char>(version);
  npy += '\0';
  if (version == 1) {
    Put(static_cast<uint16_t>(header.size()), &npy);
  } else {
    Put(static_cast<uint32_t>(header.size()), &npy);
  }
  return npy + header + data;
}

std::string ZipFile::Serialize() const {
  std::string file, directory;
  bool any_wide = false;
  for (const Member& member : members) {
    const std::string packed =
        member.deflate ? Deflate(member.content) : member.content;
    const bool wide = member.in_64_bits;
    any_wide |= wide;
    const uint64_t offset = file.size();
    file.append("PK\x03\x04", 4);
    PutCommon(member, packed, &file);
    Put<uint16_t>(0, &file);  // extra
    absl::StrAppend(&file, member.name, packed);
    directory.append("PK\x01\x02", 4);
    Put<uint16_t>(45, &directory);  // made by
    PutCommon(member, packed, &directory);
    Put<uint16_t>(wide ? 28 : 0, &directory);
    directory.append(10, '\0');  // comment, disk, attributes
    Put<uint32_t>(wide ? 0xffffffff : offset, &directory);
    directory += member.name;
    if (!wide) continue;
    Put<uint16_t>(1, &directory);
    Put<uint16_t>(24, &directory);
    Put<uint64_t>(member.content.size(), &directory);
    Put<uint64_t>(packed.size(), &directory);
    Put<uint64_t>(offset, &directory);
  }
  const uint64_t begin = file.size();
  file += directory;
  if (any_wide) {
    const uint64_t record = file.size();
    file.append("PK\x06\x06", 4);
    Put<uint64_t>(44, &file);
    file.append(12, '\0');  // versions, disks
    Put<uint64_t>(members.size(), &file);
    Put<uint64_t>(members.size(), &file);
    Put<uint64_t>(directory.size(), &file);
    Put<uint64_t>(begin, &file);
    file.append("PK\x06\x07", 4);
    Put<uint32_t>(0, &file);
    Put<uint64_t>(record, &file);
    Put<uint32_t>(1, &file);
  }
  file.append("PK\x05\x06", 4);
  Put<uint32_t>(0, &file);  // disks
  Put<uint16_t>(members.size(), &file);
  Put<uint16_t>(members.size(), &file);
  Put<uint32_t>(any_wide ? 0xffffffff : directory.size(), &file);
  Put<uint32_t>(any_wide ? 0xffffffff : begin, &file);
  Put<uint16_t>(0, &file);  // comment
  return file;
}

}  // namespace runtime
}  // namespace halftone

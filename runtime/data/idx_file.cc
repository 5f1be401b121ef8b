#include "runtime/data/idx_file.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 31;
constexpr int kUnsignedByte = 0x08;

absl::StatusOr<std::string> Gunzip(const std::string& packed,
                                   const std::string& file) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) {
    return ModelError(file, ": cannot start zlib");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  int result = Z_OK;
  while (result == Z_OK && static_cast<int64_t>(out.size()) <= kMaxBytes) {
    char buffer[1 << 16];
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof(buffer);
    result = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer, sizeof(buffer) - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result == Z_STREAM_END) return out;
  if (static_cast<int64_t>(out.size()) > kMaxBytes) {
    return ModelError(file, ": unpacks to more than ", kMaxBytes, " bytes");
  }
  return ModelError(file, ": not a whole gzip file (",
                    result == Z_BUF_ERROR ? "truncated" : "damaged", " after ",
                    out.size(), " unpacked bytes)");
}

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(absl::string_view content,
                                  absl::string_view file) {
  if (content.empty()) return ModelError(file, ": empty file");
  auto byte = [&content](size_t i) {
    return static_cast<int>(static_cast<unsigned char>(content[i]));
  };
  if (content.size() < 4 || byte(0) != 0 || byte(1) != 0) {
    return ModelError(file,
                      ": not an IDX file: expected the bytes 0 0 8 and "
                      "the number of dims first");
  }
  if (byte(2) != kUnsignedByte) {
    return ModelError(file, ": IDX type 0x", absl::Hex(byte(2)),
                      ": expected unsigned bytes (0x8)");
  }
  const int rank = byte(3);
  if (rank < 1 || rank > 4) {
    return ModelError(file, ": IDX file of ", rank, " dims: expected 1 to 4");
  }
  const size_t header = 4 + 4 * static_cast<size_t>(rank);
  if (content.size() < header) {
    return ModelError(file, ": truncated: expected a header of ", header,
                      " bytes, found ", content.size());
  }
  IdxArray array;
  int64_t expected = 1;
  for (int d = 0; d < rank; ++d) {
    const size_t at = 4 + 4 * d;
    const int64_t dim = (int64_t{byte(at)} << 24) | (byte(at + 1) << 16) |
                        (byte(at + 2) << 8) | byte(at + 3);
    array.dims.push_back(dim);
    if (__builtin_mul_overflow(expected, dim, &expected)) {
      return ModelError(file, ": its header claims more bytes than there are");
    }
  }
  const int64_t found = static_cast<int64_t>(content.size() - header);
  if (found != expected) {
    return ModelError(file, found < expected ? ": truncated" : ": too long",
                      ": its header claims ", expected,
                      " bytes of data, found ", found);
  }
  array.bytes = std::string(content.substr(header));
  return array;
}

absl::StatusOr<IdxArray> ReadIdx(const std::string& path) {
  const std::string packed = absl::StrCat(path, ".gz");
  const bool plain = ::access(path.c_str(), F_OK) == 0;
  if (!plain && ::access(packed.c_str(), F_OK) != 0) {
    return ModelError(path, ": no such file, nor ", packed);
  }
  const std::string file = plain ? path : packed;
  HT_ASSIGN_OR_RETURN(std::string content, ReadFile(file, kMaxBytes));
  if (content.empty()) return ModelError(file, ": empty file");
  if (absl::StartsWith(content, "\x1f\x8b")) {
    HT_ASSIGN_OR_RETURN(content, Gunzip(content, file));
  } else if (!plain) {
    return ModelError(file, ": not a gzip file");
  }
  return ParseIdx(content, file);
}

}  // namespace runtime
}  // namespace halftone

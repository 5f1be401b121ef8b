#include "runtime/data/idx_file.h"

#include <unistd.h>
#include <zlib.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "runtime/data/unpack.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 31;
constexpr int kUnsignedByte = 0x08;
constexpr int kMaxRank = 4;
constexpr size_t kMaxHeader = 4 + 4 * kMaxRank;
constexpr char kFetchAgain[] = "; fetch or pack it again";

struct Header {
  std::vector<int64_t> dims;
  size_t bytes = 0;        // of itself
  int64_t data_bytes = 0;  // that it claims
};

absl::StatusOr<Header> ParseHeader(absl::string_view content,
                                   absl::string_view file) {
  if (content.empty()) {
    return ModelError(file, ": expected an IDX file, found an empty file",
                      kFetchAgain);
  }
  auto byte = [&content](size_t i) {
    return static_cast<int>(static_cast<unsigned char>(content[i]));
  };
  if (content.size() < 4 || byte(0) != 0 || byte(1) != 0) {
    return ModelError(file,
                      ": not an IDX file: expected the bytes 0 0 8 and the "
                      "number of dims first; see --data in halftone run "
                      "--help");
  }
  if (byte(2) != kUnsignedByte) {
    return ModelError(file, ": IDX type 0x", absl::Hex(byte(2)),
                      ": expected unsigned bytes (0x8); convert it");
  }
  Header header;
  const int rank = byte(3);
  if (rank < 1 || rank > kMaxRank) {
    return ModelError(file, ": IDX file of ", rank, " dims: expected 1 to ",
                      kMaxRank);
  }
  header.bytes = 4 + 4 * static_cast<size_t>(rank);
  if (content.size() < header.bytes) {
    return ModelError(file, ": truncated: expected a header of ", header.bytes,
                      " bytes, found ", content.size(), kFetchAgain);
  }
  header.data_bytes = 1;
  for (int d = 0; d < rank; ++d) {
    const size_t at = 4 + 4 * d;
    const int64_t dim = (int64_t{byte(at)} << 24) | (byte(at + 1) << 16) |
                        (byte(at + 2) << 8) | byte(at + 3);
    header.dims.push_back(dim);
    if (__builtin_mul_overflow(header.data_bytes, dim, &header.data_bytes)) {
      return ModelError(file, ": its header claims more bytes than there are",
                        kFetchAgain);
    }
  }
  if (header.data_bytes > kMaxBytes) {
    return ModelError(file, ": its header claims ",
                      HumanBytes(header.data_bytes), ": expected ",
                      HumanBytes(kMaxBytes), " at most; split the file");
  }
  return header;
}

absl::Status OutOfMemory(const std::string& file) {
  return OutOfMemoryError(file, ": no memory left to unpack it");
}

// Unpacks no more than the header claims and a byte, so that a small file
// cannot fill the memory.
absl::StatusOr<std::string> Gunzip(const std::string& packed,
                                   const std::string& file,
                                   int64_t max_unpack) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return OutOfMemory(file);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  int64_t most = kMaxHeader;
  absl::Status status;
  int result = Z_OK;
  while (result == Z_OK && static_cast<int64_t>(out.size()) < most) {
    char buffer[1 << 16];
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof(buffer);
    result = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer, sizeof(buffer) - stream.avail_out);
    // A file may have several members, one after the other (RFC 1952).
    if (result == Z_STREAM_END && stream.avail_in > 0 &&
        *stream.next_in == 0x1f) {
      result = inflateReset(&stream);
    }
    if (most > static_cast<int64_t>(kMaxHeader) || out.size() < kMaxHeader) {
      continue;
    }
    const auto header = ParseHeader(out, file);
    status = header.status();
    if (status.ok()) {
      status =
          CheckUnpacked(header->data_bytes, static_cast<int64_t>(packed.size()),
                        file, max_unpack);
    }
    if (!status.ok()) break;
    most = header->data_bytes + kMaxHeader + 1;
  }
  inflateEnd(&stream);
  HT_RETURN_IF_ERROR(status);
  if (result == Z_MEM_ERROR) return OutOfMemory(file);
  if (result == Z_STREAM_END || static_cast<int64_t>(out.size()) >= most) {
    return out;
  }
  return ModelError(file, ": not a whole gzip file (",
                    result == Z_BUF_ERROR ? "truncated" : "damaged", " after ",
                    out.size(), " unpacked bytes)", kFetchAgain);
}

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(absl::string_view content,
                                  absl::string_view file) {
  HT_ASSIGN_OR_RETURN(Header header, ParseHeader(content, file));
  const int64_t found = static_cast<int64_t>(content.size() - header.bytes);
  if (found != header.data_bytes) {
    const bool less = found < header.data_bytes;
    return ModelError(file, less ? ": truncated" : ": too long",
                      ": its header claims ", header.data_bytes,
                      " bytes of data, found ",
                      less ? absl::StrCat(found) : "more", kFetchAgain);
  }
  IdxArray array;
  array.file = std::string(file);
  array.dims = std::move(header.dims);
  array.bytes = std::string(content.substr(header.bytes));
  return array;
}

absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int64_t max_unpack) {
  const std::string packed = absl::StrCat(path, ".gz");
  const bool plain = ::access(path.c_str(), F_OK) == 0;
  if (!plain && ::access(packed.c_str(), F_OK) != 0) {
    return ModelError(
        path, ": no such file, nor ", packed,
        "; --data idx:DIR names a folder with MNIST's four files");
  }
  const std::string file = plain ? path : packed;
  HT_ASSIGN_OR_RETURN(std::string content, ReadFile(file, kMaxBytes));
  if (absl::StartsWith(content, "\x1f\x8b")) {
    HT_ASSIGN_OR_RETURN(content, Gunzip(content, file, max_unpack));
  } else if (!plain && !content.empty()) {
    return ModelError(file, ": expected a gzip file, found other bytes",
                      kFetchAgain);
  }
  return ParseIdx(content, file);
}

}  // namespace runtime
}  // namespace halftone

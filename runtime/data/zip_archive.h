// Zip files, as far as NumPy writes them: stored or deflated members, with or
// without the 64-bit extension.
#ifndef HALFTONE_RUNTIME_DATA_ZIP_ARCHIVE_H_
#define HALFTONE_RUNTIME_DATA_ZIP_ARCHIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

class ZipArchive {
 public:
  struct Member {
    std::string name;
    uint16_t flags = 0, method = 0;
    uint32_t crc = 0;
    uint64_t packed = 0, size = 0;  // bytes
    uint64_t offset = 0;            // of its local header
  };

  // Reads the directory of `content`, which outlives the archive. `file` is
  // for messages. Errors (kModel): no zip file, truncated, damaged.
  static absl::StatusOr<ZipArchive> Parse(absl::string_view content,
                                          absl::string_view file);

  const std::vector<Member>& members() const { return members_; }

  // A member's bytes: a part of the archive's content where it is stored, else
  // unpacked into `*unpacked`. Errors (kModel): damaged (its checksum is
  // always compared), encrypted, packed in another way, more than
  // `max_unpack` times its packed size (see unpack.h).
  absl::StatusOr<absl::string_view> Read(const Member& member,
                                         int64_t max_unpack,
                                         std::string* unpacked) const;

 private:
  ZipArchive(absl::string_view content, absl::string_view file)
      : content_(content), file_(file) {}
  absl::Status ReadDirectory();
  absl::StatusOr<absl::string_view> Packed(const Member& member) const;
  absl::Status Damaged(absl::string_view what) const;

  absl::string_view content_;
  std::string file_;
  std::vector<Member> members_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_ZIP_ARCHIVE_H_

#include "runtime/collective/shared_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/system/system_error.h"
#include "runtime/device/device.h"
#include "runtime/rendezvous/token.h"

namespace halftone {
namespace runtime {
namespace {

// Before the data, which it aligns: what tells this segment from all others.
constexpr int64_t kHeader = kAlignment;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::Status Refused(int error, absl::string_view what) {
  return SystemError(ExitCode::kCommunication, error,
                     absl::StrCat("memory that ranks share: ", what));
}

// Closes a file at the end of the scope.
struct File {
  explicit File(int file) : file(file) {}
  ~File() {
    if (file >= 0) close(file);
  }
  int file;
};

}  // namespace

std::string MachineId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  char network[64] = {};
  if (id.empty() ||
      readlink("/proc/self/ns/net", network, sizeof(network) - 1) < 0) {
    return "";
  }
  return absl::StrCat(id, "/", network);
}

absl::StatusOr<SharedSegment> SharedSegment::Create(int64_t bytes) {
  SharedSegment segment;
  segment.mapped_bytes_ = bytes + kHeader;
  segment.file_ =
      memfd_create("halftone-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (segment.file_ < 0) return Refused(errno, "memfd_create");
  // Not ftruncate alone, after which a write may find no memory.
  const int error = posix_fallocate(segment.file_, 0, segment.mapped_bytes_);
  if (error != 0) return Refused(error, "posix_fallocate");
  if (fcntl(segment.file_, F_ADD_SEALS, kSeals) != 0) {
    return Refused(errno, "F_ADD_SEALS");
  }
  void* mapped = mmap(nullptr, segment.mapped_bytes_, PROT_READ | PROT_WRITE,
                      MAP_SHARED, segment.file_, 0);
  if (mapped == MAP_FAILED) return Refused(errno, "mmap");
  segment.mapped_ = mapped;
  segment.data_ = static_cast<char*>(mapped) + kHeader;
  const std::string token = NewToken();
  HT_CHECK(token.size() <= kHeader, "a token fits");
  std::memcpy(mapped, token.data(), token.size());
  segment.address_ =
      absl::StrCat(MachineId(), " ", getpid(), " ", segment.file_, " ", token);
  return segment;
}

absl::StatusOr<SharedSegment> SharedSegment::Open(absl::string_view address,
                                                  int64_t bytes) {
  const std::vector<std::string> parts = absl::StrSplit(address, ' ');
  int process = 0;
  int number = 0;
  if (parts.size() != 4 || parts[0].empty() || parts[3].empty() ||
      static_cast<int64_t>(parts[3].size()) > kHeader ||
      !absl::SimpleAtoi(parts[1], &process) ||
      !absl::SimpleAtoi(parts[2], &number)) {
    return CommunicationError("\"", address, "\" is no shared memory");
  }
  if (parts[0] != MachineId()) return CommunicationError("on another machine");
  const std::string path = absl::StrCat("/proc/", process, "/fd/", number);
  // What has that number in this container may be anything.
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.file < 0) return Refused(errno, path);
  struct stat info;
  if (fstat(file.file, &info) != 0) return Refused(errno, path);
  if (info.st_size != bytes + kHeader ||
      (fcntl(file.file, F_GET_SEALS) & kSeals) != kSeals) {
    return CommunicationError(path, " is not the peer's memory");
  }
  SharedSegment segment;
  segment.mapped_bytes_ = info.st_size;
  void* mapped =
      mmap(nullptr, segment.mapped_bytes_, PROT_READ, MAP_SHARED, file.file, 0);
  if (mapped == MAP_FAILED) return Refused(errno, "mmap");
  segment.mapped_ = mapped;
  segment.data_ = static_cast<char*>(mapped) + kHeader;
  if (std::memcmp(mapped, parts[3].data(), parts[3].size()) != 0) {
    return CommunicationError(path, " is not the peer's memory");
  }
  return segment;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept {
  *this = std::move(other);
}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(address_, other.address_);
  return *this;
}

SharedSegment::~SharedSegment() {
  Unpublish();
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

void SharedSegment::Unpublish() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

}  // namespace runtime
}  // namespace halftone

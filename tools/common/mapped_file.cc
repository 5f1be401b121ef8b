#include "tools/common/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace tools {

MappedFile::~MappedFile() {
  munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path) {
  // A FIFO would wait for somebody to write.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return ModelError(path, ": cannot be read: ", std::strerror(errno));
  }
  struct stat facts;
  void* at = MAP_FAILED;
  std::string problem;
  if (fstat(fd, &facts) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(facts.st_mode)) {
    problem = absl::StrCat(
        "expected a file, found ",
        S_ISDIR(facts.st_mode) ? "a directory" : "a device or a pipe");
  } else if (facts.st_size == 0) {
    problem = "expected content, the file is empty";
  } else {
    at = mmap(nullptr, facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) problem = std::strerror(errno);
  }
  close(fd);
  if (!problem.empty()) return ModelError(path, ": ", problem);
  return std::unique_ptr<MappedFile>(new MappedFile(
      absl::string_view(static_cast<const char*>(at), facts.st_size)));
}

}  // namespace tools
}  // namespace halftone

#include "graph/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/file_writing.h"

namespace halftone {
namespace {

using internal::Descriptor;
using internal::DirectoryOf;
using internal::Failed;
using internal::Open;
using internal::Retried;

absl::Status WriteTo(int fd, const std::string& path,
                     absl::Span<const absl::string_view> parts) {
  if (fd < 0) return Failed(path, "cannot write");
  Descriptor file(fd);
  return internal::WriteAll(fd, path, parts);
}

// The descriptor that a link like /dev/stdout or /dev/fd/3 stands for; -1 for
// any other link. To open it anew would begin at the file's start.
int DescriptorOf(const std::string& link) {
  int fd = -1;
  struct stat named, own;
  if (!absl::SimpleAtoi(link.substr(link.rfind('/') + 1), &fd) || fd < 0 ||
      ::stat(link.c_str(), &named) != 0 || ::fstat(fd, &own) != 0 ||
      named.st_dev != own.st_dev || named.st_ino != own.st_ino) {
    return -1;
  }
  struct stat here, descriptors;
  return ::stat(DirectoryOf(link).c_str(), &here) == 0 &&
                 ::stat("/proc/self/fd/", &descriptors) == 0 &&
                 here.st_dev == descriptors.st_dev &&
                 here.st_ino == descriptors.st_ino
             ? fd
             : -1;
}

// Where a name leads.
struct Output {
  std::string path;     // links followed
  int descriptor = -1;  // it is one of ours
  bool there = false;
  struct stat info;
};

absl::StatusOr<Output> Follow(const std::string& path) {
  Output output;
  output.path = path;
  if (path == "-") {
    output.descriptor = STDOUT_FILENO;
    return output;
  }
  for (int links = 0; links < 40; ++links) {
    if (::lstat(output.path.c_str(), &output.info) != 0) {
      if (errno == ENOENT) return output;
      return Failed(path, "cannot write");
    }
    output.there = !S_ISLNK(output.info.st_mode);
    if (output.there) return output;
    output.descriptor = DescriptorOf(output.path);
    if (output.descriptor >= 0) return output;
    std::string target(4096, '\0');
    const ssize_t size =
        ::readlink(output.path.c_str(), &target[0], target.size());
    if (size < 0) return Failed(path, "cannot write");
    target.resize(size);
    output.path = target[0] == '/' ? target : DirectoryOf(output.path) + target;
  }
  errno = ELOOP;
  return Failed(path, "cannot write");
}

absl::Status NoDirectory(const std::string& path, const Output& output) {
  if (!output.there || !S_ISDIR(output.info.st_mode)) return absl::OkStatus();
  return ModelError(path, ": cannot write: it is a directory; name a file");
}

// In a directory that takes no new file, a file may still be written.
bool MayBeOverwritten(const Output& output) {
  return output.there && (errno == EACCES || errno == EROFS);
}

}  // namespace

absl::Status CheckOutput(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const Output output, Follow(path));
  if (output.descriptor >= 0) return absl::OkStatus();
  HT_RETURN_IF_ERROR(NoDirectory(path, output));
  bool as_it_is = output.there && !S_ISREG(output.info.st_mode);
  if (!as_it_is) {
    std::string temporary;
    const int fd = internal::MakeBeside(output.path, &temporary);
    if (fd >= 0) {
      const Descriptor file(fd);
      ::unlink(temporary.c_str());
      return absl::OkStatus();
    }
    as_it_is = MayBeOverwritten(output);
  }
  if (as_it_is && ::access(output.path.c_str(), W_OK) == 0) {
    return absl::OkStatus();
  }
  return Failed(path, "cannot write");
}

absl::Status WriteOutput(const std::string& path, absl::string_view content) {
  return WriteOutput(path, absl::MakeConstSpan(&content, 1));
}

absl::Status WriteOutput(const std::string& path,
                         absl::Span<const absl::string_view> parts) {
  HT_ASSIGN_OR_RETURN(const Output output, Follow(path));
  if (output.descriptor >= 0) {
    std::fflush(nullptr);  // what was said before stays before
    if (output.descriptor == STDOUT_FILENO) KeepStdoutForOutput();
    return WriteTo(Retried([&] { return ::dup(output.descriptor); }), path,
                   parts);
  }
  HT_RETURN_IF_ERROR(NoDirectory(path, output));
  if (output.there && !S_ISREG(output.info.st_mode)) {
    return WriteTo(Open(output.path, O_WRONLY | O_NOCTTY), path, parts);
  }
  std::string temporary;
  const int fd = internal::MakeBeside(output.path, &temporary);
  if (fd < 0 && MayBeOverwritten(output)) {
    return WriteTo(Open(output.path, O_WRONLY | O_TRUNC), path, parts);
  }
  if (fd < 0) return Failed(path, "cannot write");
  return internal::WriteAndRename(fd, temporary, output.path,
                                  output.there ? &output.info : nullptr, parts);
}

}  // namespace halftone

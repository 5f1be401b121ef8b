// A directory held open, and what lies in it, by name. Whatever else may write
// there (a prepared run directory, a shared disk): no link in it is followed,
// so that nothing outside is read, written or removed.
#ifndef HALFTONE_GRAPH_BASE_DISK_DIRECTORY_H_
#define HALFTONE_GRAPH_BASE_DISK_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {

// Closes its descriptor at the end of its life.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int Release();

 private:
  int fd_;
};

// All errors are kModel and name path and cause.
class Directory {
 public:
  enum class Kind { kNothing, kFile, kDirectory, kLink, kOther };

  // `path` is what a user named: links up to and in its last part are followed.
  static absl::StatusOr<Directory> Open(const std::string& path);
  // mkdir -p, then Open. `*made` (may be null): its last part was not there.
  static absl::StatusOr<Directory> Make(const std::string& path,
                                        bool* made = nullptr);

  // The directory that `path` lies in, and its last part: where something in a
  // directory is given by its path.
  static absl::StatusOr<Directory> OpenParent(const std::string& path,
                                              std::string* name);

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  std::string PathOf(absl::string_view name) const;

  // All names in it, sorted; without . and ..
  std::vector<std::string> Names() const;
  Kind KindOf(const std::string& name) const;

  // A directory in this one, which MakeChild makes if it is not there.
  absl::StatusOr<Directory> OpenChild(const std::string& name) const;
  absl::StatusOr<Directory> MakeChild(const std::string& name) const;

  // A plain file. Read refuses one over `max_bytes`.
  absl::StatusOr<std::string> Read(const std::string& name,
                                   int64_t max_bytes = int64_t{1} << 31) const;
  absl::StatusOr<Descriptor> OpenToRead(const std::string& name) const;
  // Whatever had the name is replaced.
  absl::StatusOr<Descriptor> OpenNew(const std::string& name) const;
  // An existing one, at its end.
  absl::StatusOr<Descriptor> OpenToAppend(const std::string& name) const;
  // Through `name`.tmp, fsynced and renamed: a reader sees the old or the new
  // content. One writer at a time (see DirectoryLock).
  absl::Status Write(const std::string& name, absl::string_view content) const;

  // Replaces what `to` is, unless that is a directory with something in it.
  absl::Status Rename(const std::string& from, const std::string& to) const;
  // Both names at once where the file system can; else not at all (an error).
  absl::Status Exchange(const std::string& a, const std::string& b) const;
  // A file or a link itself; true if it is gone.
  bool Unlink(const std::string& name) const;
  // A directory with nothing in it; true if it is gone.
  bool RemoveEmpty(const std::string& name) const;
  // What was made, renamed or removed so far lasts.
  void Sync() const;

 private:
  Directory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  Descriptor fd_;
};

// Writes all of it and fsyncs; `path` is for errors.
absl::Status WriteAndSync(int fd, const std::string& path,
                          absl::string_view content);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_DISK_DIRECTORY_H_

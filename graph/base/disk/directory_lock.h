// One writer of a directory at a time, on this machine and, where the file
// system carries locks (NFS does), on others.
#ifndef HALFTONE_GRAPH_BASE_DISK_DIRECTORY_LOCK_H_
#define HALFTONE_GRAPH_BASE_DISK_DIRECTORY_LOCK_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "graph/base/disk/directory.h"

namespace halftone {

// An flock on the file `.lock`, in which the holder stands: the kernel gives it
// back when the holder ends, however it ends. Threads of one process exclude
// each other, too.
class DirectoryLock {
 public:
  static constexpr char kFile[] = ".lock";

  // Makes the directory if it is not there. Waits up to `patience` for a holder
  // that is about to end. Errors: kUsage (somebody else has it: pid, host and
  // since when; `flag` names another directory), kModel (it cannot be made).
  static absl::StatusOr<DirectoryLock> Take(
      const std::string& path, absl::Duration patience = absl::Seconds(1),
      absl::string_view flag = "--out");
  // The error of Take if somebody holds it now; makes and waits for nothing.
  static absl::Status Probe(const std::string& path);

  // Of who has it: its path names the directory that was locked, now too. Asked
  // before something is written there by path, which else goes to whatever has
  // the name after a rename, or where a link leads by now. OK as well if
  // nothing is held, or the file system cannot tell now. Errors (kModel): the
  // path is another directory, or none; says where the locked one is.
  absl::Status Check() const;

  DirectoryLock() = default;
  DirectoryLock(DirectoryLock&&) = default;
  DirectoryLock& operator=(DirectoryLock&&) = default;
  // Gives it back and removes the file. A directory that Take made and that is
  // empty still goes as well: a run that failed before it began leaves nothing.
  ~DirectoryLock();

 private:
  std::string path_;  // empty: nothing is held
  bool made_ = false;
  // Open until the end, so that no other directory gets its numbers.
  std::optional<Directory> directory_;
  Descriptor file_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_DISK_DIRECTORY_LOCK_H_

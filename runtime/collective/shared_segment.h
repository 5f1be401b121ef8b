// Memory of a process that others on the same machine read.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_SHARED_SEGMENT_H_
#define HALFTONE_RUNTIME_COLLECTIVE_SHARED_SEGMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// One per start of a machine and network of it: ranks in two network namespaces
// are two machines to each other, whatever else they share, and find out about
// a cut between them as such. Empty: not known.
std::string MachineId();

// Without a name in any file system: nothing stays behind when its processes
// end, however they do, and only processes of the same user get at it.
class SharedSegment {
 public:
  // A new one, all zero, for this process to write. Its memory is there: no
  // later access fails for want of it, nor because a process has gone.
  static absl::StatusOr<SharedSegment> Create(int64_t bytes);
  // The segment that Create made with that address, for reading. Anything else
  // that is found there (another machine, another container) is an error.
  static absl::StatusOr<SharedSegment> Open(absl::string_view address,
                                            int64_t bytes);

  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  // Aligned to kAlignment.
  char* data() const { return data_; }
  // Where other processes find it; good until Unpublish.
  const std::string& address() const { return address_; }
  // When all have opened it.
  void Unpublish();

 private:
  int file_ = -1;
  void* mapped_ = nullptr;
  int64_t mapped_bytes_ = 0;
  char* data_ = nullptr;
  std::string address_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_SHARED_SEGMENT_H_

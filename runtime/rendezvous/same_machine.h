// How ranks on one machine find each other when nobody gave an address: rank 0
// leaves one in a private directory, under a name made of the job's identity.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_SAME_MACHINE_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_SAME_MACHINE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

// What rank 0 leaves.
struct MeetingPoint {
  HostPort address;
  std::string token;
};

// `<directory>/halftone-<uid>/meet-<hash of job_id>`; where somebody else has
// that name, `$HOME/.halftone-meetings` instead. The directory is made with
// mode 0700; an error (kCommunication) if it is there and not private.
absl::StatusOr<std::string> MeetingFile(const std::string& directory,
                                        const std::string& job_id);

// Written at once, mode 0600.
absl::Status WriteMeetingFile(const std::string& path,
                              const MeetingPoint& point);
// Nothing if there is none yet.
std::optional<MeetingPoint> ReadMeetingFile(const std::string& path);

// While it lives, a signal that asks the process to end (SIGINT, SIGTERM,
// SIGHUP) and that nobody else takes removes the file first. One at a time;
// another beside it does nothing.
class UnlinkedIfEnded {
 public:
  explicit UnlinkedIfEnded(const std::string& path);
  ~UnlinkedIfEnded();
  UnlinkedIfEnded(const UnlinkedIfEnded&) = delete;
  UnlinkedIfEnded& operator=(const UnlinkedIfEnded&) = delete;

 private:
  bool holds_ = false;
};

// Identifies the process that started the ranks: the nearest ancestor in whose
// environment `rank_variable` is not set, with its start time.
std::string LauncherIdentity(const std::string& rank_variable);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_SAME_MACHINE_H_

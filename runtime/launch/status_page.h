// A page of memory that a rank shares with its launcher: where it is. Writing
// costs nanoseconds and never blocks; the launcher can still read it when the
// rank is dead.
#ifndef HALFTONE_RUNTIME_LAUNCH_STATUS_PAGE_H_
#define HALFTONE_RUNTIME_LAUNCH_STATUS_PAGE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/rendezvous/environment.h"

namespace halftone {
namespace runtime {

// The number of the open file that holds the page.
inline constexpr char kStatusVariable[] = "HALFTONE_STATUS_FD";

struct RankStatus {
  bool attached = false;    // the rank has opened the page
  int64_t step = -1;        // under way; -1: before the first
  int64_t checkpoint = -1;  // step of the last good checkpoint; -1: none
  std::string activity;     // "all_reduce bucket 2", "reading data"
  std::string device;       // "cpu", "cuda:1 NVIDIA H100"
};

struct StatusPageLayout;

// The launcher's side.
class StatusPage {
 public:
  static absl::StatusOr<std::unique_ptr<StatusPage>> Create();
  ~StatusPage();
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  // To be open in the rank under the number in kStatusVariable.
  int fd() const { return fd_; }
  RankStatus Read() const;

 private:
  StatusPage(int fd, StatusPageLayout* page) : fd_(fd), page_(page) {}

  int fd_;
  StatusPageLayout* page_;
};

// The rank's side. May be used by several threads.
class StatusReporter {
 public:
  // One that does nothing if there is no launcher.
  static std::unique_ptr<StatusReporter> FromEnvironment(
      const Environment& env);
  ~StatusReporter();

  void SetStep(int64_t step);
  // What the rank is about to do; cut to 127 bytes.
  void SetActivity(absl::string_view activity);
  void SetDevice(absl::string_view device);
  void SetCheckpoint(int64_t step);

 private:
  explicit StatusReporter(StatusPageLayout* page) : page_(page) {}

  StatusPageLayout* page_;  // null: nobody reads
  std::mutex mutex_;        // one writer at a time
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_STATUS_PAGE_H_

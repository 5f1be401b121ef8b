#include "runtime/launch/status_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "graph/base/error.h"
#include "graph/base/system/system_error.h"

namespace halftone {
namespace runtime {
namespace {

constexpr uint64_t kMagic = 0x3153544154535448;  // "HTSTATS1"
constexpr int64_t kPageBytes = 4096;
constexpr int kWords = 16;  // of text: 128 bytes with the final zero

}  // namespace

// A text is valid while `version` is even and the same before and after it was
// read; it is made of atomic words, so that a reader in between is no race.
struct SharedText {
  std::atomic<uint64_t> version;
  std::atomic<uint64_t> words[kWords];

  void Write(absl::string_view text) {
    uint64_t copy[kWords] = {};
    std::memcpy(copy, text.data(), std::min(text.size(), sizeof(copy) - 1));
    version.fetch_add(1, std::memory_order_acq_rel);
    for (int i = 0; i < kWords; ++i) {
      words[i].store(copy[i], std::memory_order_release);
    }
    version.fetch_add(1, std::memory_order_release);
  }

  std::string Read() const {
    char text[kWords * 8 + 1] = {};
    // A writer that died in the middle leaves an odd version that stays: take
    // what is there after about 50 ms. One that waits for a core gets it.
    constexpr int kSpins = 100, kSleeps = 500;
    uint64_t stuck_at = 0;
    for (int stuck = 0; stuck < kSpins + kSleeps; ++stuck) {
      if (stuck > kSpins) usleep(100);
      const uint64_t before = version.load(std::memory_order_acquire);
      for (int i = 0; i < kWords; ++i) {
        const uint64_t word = words[i].load(std::memory_order_acquire);
        std::memcpy(text + 8 * i, &word, 8);
      }
      const uint64_t after = version.load(std::memory_order_acquire);
      if (before == after && before % 2 == 0) break;
      if (after != stuck_at) stuck = 0;  // it lives
      stuck_at = after;
    }
    return text;
  }
};

struct StatusPageLayout {
  std::atomic<uint64_t> magic;
  std::atomic<int64_t> attached;
  std::atomic<int64_t> step;
  std::atomic<int64_t> checkpoint;
  SharedText activity;
  SharedText device;
};
static_assert(sizeof(StatusPageLayout) <= kPageBytes, "one page");
static_assert(std::atomic<uint64_t>::is_always_lock_free,
              "locks are not shared by processes");

namespace {

StatusPageLayout* Map(int fd) {
  void* page =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return page == MAP_FAILED ? nullptr : static_cast<StatusPageLayout*>(page);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StatusPage>> StatusPage::Create() {
  const int fd =
      memfd_create("halftone-status", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // A rank that cuts the file would end the launcher, too.
  const bool made =
      fd >= 0 && ftruncate(fd, kPageBytes) == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  StatusPageLayout* page = made ? Map(fd) : nullptr;
  if (page == nullptr) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return SystemError(ExitCode::kDevice, error,
                       "cannot make a page of shared memory");
  }
  new (page) StatusPageLayout();
  page->step = -1;
  page->checkpoint = -1;
  page->magic = kMagic;
  return absl::WrapUnique(new StatusPage(fd, page));
}

StatusPage::~StatusPage() {
  munmap(page_, kPageBytes);
  close(fd_);
}

RankStatus StatusPage::Read() const {
  RankStatus status;
  status.attached = page_->attached.load(std::memory_order_acquire) != 0;
  status.step = page_->step.load(std::memory_order_acquire);
  status.checkpoint = page_->checkpoint.load(std::memory_order_acquire);
  status.activity = page_->activity.Read();
  status.device = page_->device.Read();
  return status;
}

std::unique_ptr<StatusReporter> StatusReporter::FromEnvironment(
    const Environment& env) {
  StatusPageLayout* page = nullptr;
  auto variable = env.find(kStatusVariable);
  int fd = -1;
  struct stat info;
  // The number may mean another file by now: a program between may have closed
  // the page.
  if (variable != env.end() && absl::SimpleAtoi(variable->second, &fd) &&
      fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      info.st_size == kPageBytes) {
    page = Map(fd);
    if (page != nullptr && page->magic != kMagic) {
      munmap(page, kPageBytes);
      page = nullptr;
    }
  }
  if (page != nullptr) page->attached = 1;
  return absl::WrapUnique(new StatusReporter(page));
}

StatusReporter::~StatusReporter() {
  if (page_ != nullptr) munmap(page_, kPageBytes);
}

void StatusReporter::SetStep(int64_t step) {
  if (page_ == nullptr) return;
  page_->step.store(step, std::memory_order_release);
}

void StatusReporter::SetActivity(absl::string_view activity) {
  if (page_ == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  page_->activity.Write(activity);
}

void StatusReporter::SetDevice(absl::string_view device) {
  if (page_ == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  page_->device.Write(device);
}

void StatusReporter::SetCheckpoint(int64_t step) {
  if (page_ == nullptr) return;
  page_->checkpoint.store(step, std::memory_order_release);
}

}  // namespace runtime
}  // namespace halftone

#include "graph/base/out_of_memory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "graph/base/error.h"

namespace halftone {
namespace {

thread_local const Doing* doing = nullptr;
// Of the thread that spoke last, for those that said nothing. Literals live on.
std::atomic<const char*> process_does{nullptr};
std::atomic<bool> may_exit{false};

// A line that is put together without memory.
class Line {
 public:
  Line& operator<<(absl::string_view text) {
    const size_t n = std::min(text.size(), sizeof(bytes_) - 1 - size_);
    for (size_t i = 0; i < n; ++i) {
      // Names come from files: nothing in them reaches a terminal as a command.
      const unsigned char c = text[i];
      bytes_[size_++] = c < 0x20 || c == 0x7f ? '?' : static_cast<char>(c);
    }
    return *this;
  }
  void Write() {
    bytes_[size_++] = '\n';
    (void)!::write(STDERR_FILENO, bytes_, size_);
  }

 private:
  char bytes_[512];
  size_t size_ = 0;
};

}  // namespace

class DoingText {
 public:
  static void Append(Line& line) {
    const char* what = doing != nullptr ? doing->what_ : process_does.load();
    if (what == nullptr) return;
    line << " while " << what;
    if (doing != nullptr && doing->detail_[0] != '\0') {
      line << " " << doing->detail_;
    }
  }
};

namespace {

[[noreturn]] void End(absl::string_view what) {
  // Another thread may fail next: one line is enough.
  static std::atomic<bool> ended{false};
  if (ended.exchange(true)) {
    while (true) ::pause();
  }
  Line line;
  line << "error    " << what;
  DoingText::Append(line);
  line << "; give it more (ulimit -v, cgroup), or use a smaller batch, fewer "
          "ranks or threads";
  line.Write();
  ::_exit(static_cast<int>(ExitCode::kOutOfMemory));
}

[[noreturn]] void OnFailedAllocation() { End("out of memory"); }

bool IsWantOfResources(const std::error_code& code) {
  return code == std::errc::not_enough_memory ||
         code == std::errc::resource_unavailable_try_again;
}

[[noreturn]] void OnUncaughtException() {
  if (std::current_exception() != nullptr) {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      End("out of memory");
    } catch (const std::length_error&) {
      End("out of memory: more was asked for than any machine has");
    } catch (const std::system_error& error) {
      if (IsWantOfResources(error.code())) {
        End("out of memory or threads");
      }
    } catch (...) {
    }
  }
  std::abort();
}

// GNU OpenMP calls exit(1) where it gets no memory or no thread, and nothing
// else that is linked here calls exit at all.
void OnExit() {
  if (may_exit.load()) return;
  End("out of memory or threads: a library gave up");
}

}  // namespace

void EndWhenOutOfMemory() {
  static std::atomic<bool> called{false};
  if (called.exchange(true)) return;
  std::set_new_handler(OnFailedAllocation);
  std::set_terminate(OnUncaughtException);
  std::atexit(OnExit);
}

void MayExitNow() { may_exit.store(true); }

Doing::Doing(const char* what, absl::string_view detail)
    : what_(what), outer_(doing) {
  const size_t n = std::min(detail.size(), sizeof(detail_) - 1);
  std::memcpy(detail_, detail.data(), n);
  detail_[n] = '\0';
  doing = this;
  process_does.store(what);
}

Doing::~Doing() {
  doing = outer_;
  if (outer_ != nullptr) process_does.store(outer_->what_);
}

}  // namespace halftone

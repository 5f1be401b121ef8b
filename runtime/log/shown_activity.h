// What a verb is at, shown on stderr while it takes long.
#ifndef HALFTONE_RUNTIME_LOG_SHOWN_ACTIVITY_H_
#define HALFTONE_RUNTIME_LOG_SHOWN_ACTIVITY_H_

#include <cstdint>

#include "runtime/log/console.h"
#include "runtime/log/pulse.h"

namespace halftone {
namespace runtime {

// From its first stage on, until it is gone.
class ShownActivity {
 public:
  // As Activity::Begin.
  explicit ShownActivity(const char* stage, int64_t number = 0, int64_t of = 0)
      : console_(Console::Standard()), pulse_(&console_, &activity_) {
    activity_.Begin(stage, number, of);
  }
  Activity* operator->() { return &activity_; }

 private:
  Console console_;
  Activity activity_;
  Pulse pulse_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_SHOWN_ACTIVITY_H_

// SIGINT, SIGTERM and SIGHUP ask a run to finish its step and to write a
// checkpoint; a second one ends the process at once, unless it comes so soon
// after the first that it is the same request (repeated_signal.h). A file over
// the process's limit (ulimit -f), and a console that is gone (`| head`), are
// errors of whoever writes, not the end of the process.
#ifndef HALFTONE_RUNTIME_TRAIN_SIGNALS_H_
#define HALFTONE_RUNTIME_TRAIN_SIGNALS_H_

#include <signal.h>

namespace halftone {
namespace runtime {

// Catches the signals while it lives; one at a time in a process.
class SignalCatcher {
 public:
  SignalCatcher();
  ~SignalCatcher();
  SignalCatcher(const SignalCatcher&) = delete;
  SignalCatcher& operator=(const SignalCatcher&) = delete;

  // The signal that came; 0: none yet. May be asked from any thread.
  static int caught();

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  static constexpr int kFailedWrites[] = {SIGXFSZ, SIGPIPE};
  struct sigaction before_[3], writes_before_[2];
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_SIGNALS_H_

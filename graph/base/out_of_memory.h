// What becomes of a process for which there is no memory, or no thread, left:
// one line that says what it was doing, and exit code 6. Where an allocation
// fails cannot be foreseen, nor can a step be undone half-way: the process
// ends there, in whichever thread, and whatever was written stays whole.
#ifndef HALFTONE_GRAPH_BASE_OUT_OF_MEMORY_H_
#define HALFTONE_GRAPH_BASE_OUT_OF_MEMORY_H_

#include "absl/strings/string_view.h"

namespace halftone {

// For programs, first thing in main: failed allocations of C++, exceptions
// that nobody catches and libraries that call exit() end as said above. An
// exception that is no matter of memory still aborts.
void EndWhenOutOfMemory();
// Called last in main: from here on a call of exit() is the program's own.
void MayExitNow();

// Says what this thread does while it lives, and after that what it did
// before; a thread that has said nothing does what the process was last said to
// do. `detail` is cut at 200 bytes. Allocates nothing.
class Doing {
 public:
  explicit Doing(const char* what, absl::string_view detail = "");
  ~Doing();
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  friend class DoingText;
  const char* what_;  // a literal
  char detail_[200];
  const Doing* outer_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_OUT_OF_MEMORY_H_

// What `halftone doctor` finds out about this machine.
#ifndef HALFTONE_TOOLS_REPORT_DOCTOR_REPORT_H_
#define HALFTONE_TOOLS_REPORT_DOCTOR_REPORT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace halftone {
namespace tools {

struct Finding {
  enum class State {
    kOk,
    kNote,    // works, less well than it could
    kAbsent,  // not here, and only wanted for what is named
    kBroken,  // training cannot work
  };
  State state = State::kOk;
  std::string what;    // "cpu", "gpu", "temporary files"
  std::string found;   // in words
  std::string advice;  // what to do about it; empty: nothing
};

// This binary, processor, memory, GPUs and their libraries, targets, files and
// the loopback network, as they are now. Takes well under a second, starts
// nothing and leaves nothing behind.
std::vector<Finding> ExamineMachine();

// A finding a line, its advice below it.
std::string DoctorText(absl::Span<const Finding> findings);
// One object: "ok", and `findings`, each {"state","what","found","advice"}.
std::string DoctorJson(absl::Span<const Finding> findings);
// Whether training on the CPU can work here.
bool CanTrain(absl::Span<const Finding> findings);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_DOCTOR_REPORT_H_

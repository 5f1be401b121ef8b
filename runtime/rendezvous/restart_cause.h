// Why the ranks were started again, told to them by their launcher.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_RESTART_CAUSE_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_RESTART_CAUSE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/rendezvous/environment.h"

namespace halftone {
namespace runtime {

// Of another attempt than the first.
inline constexpr char kRestartVariable[] = "HALFTONE_RESTART";

struct RestartCause {
  int64_t attempt = 1;  // that begins: 1, 2, ...
  int64_t rank = -1;    // that failed; -1: of another node
  int64_t step = -1;    // at which it did; -1: before the first
  std::string cause;
};

// The value of kRestartVariable: "1 0 70 signal 9 (SIGKILL): killed ...".
std::string ToText(const RestartCause& cause);
// That of this environment; none: these ranks are the first, or another
// launcher's.
std::optional<RestartCause> FindRestartCause(const Environment& env);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_RESTART_CAUSE_H_

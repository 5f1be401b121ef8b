// Calls of the system that a signal may cut short.
#ifndef HALFTONE_GRAPH_BASE_RETRY_H_
#define HALFTONE_GRAPH_BASE_RETRY_H_

#include <cerrno>

namespace halftone {

// The result of a call that is negative where it failed, called again for as
// long as errno says EINTR. Not for close(), whose descriptor is gone then.
template <typename Call>
auto Retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_RETRY_H_

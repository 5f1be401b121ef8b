// Who is late, from what the ranks say about where they are.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_COLLECTIVE_STATUS_H_
#define HALFTONE_RUNTIME_COLLECTIVE_COLLECTIVE_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/rendezvous/store_server.h"

namespace halftone {
namespace runtime {

struct CollectiveStatus {
  bool inside = false;  // of a collective
  int64_t number = 0;   // of that, or of the last one; the first is 1
  std::string call;     // its description
};
std::string ToText(const CollectiveStatus& where);
std::optional<CollectiveStatus> CollectiveStatusFromText(
    absl::string_view text);

// What rank `asker` waits for in vain: ranks that gave no answer, that have not
// come to this collective, or that are in another one instead.
RunFailure ExplainLate(
    int asker, const std::vector<std::optional<CollectiveStatus>>& ranks);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_COLLECTIVE_STATUS_H_

// What one rank does while the others wait, and may take longer than a rank
// that hangs is given.
#ifndef HALFTONE_RUNTIME_TRAIN_LONG_WORK_H_
#define HALFTONE_RUNTIME_TRAIN_LONG_WORK_H_

#include <functional>

#include "absl/status/status.h"
#include "runtime/collective/communicator.h"

namespace halftone {
namespace runtime {

// Does `work`, in a thread of its own where there are peers, and comes back
// when all ranks have done theirs. All ranks call it; one without work gives
// an empty function. Meanwhile the ranks tell each other that they live, so
// that a slow disk is not taken for a hang, whatever the limit of a
// collective. Returns this rank's own status, or why peers are gone.
absl::Status DoLongWork(Communicator& communicator,
                        const std::function<absl::Status()>& work);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_LONG_WORK_H_

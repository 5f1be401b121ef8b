// When it is time for an eval or a checkpoint.
#ifndef HALFTONE_RUNTIME_TRAIN_CADENCE_H_
#define HALFTONE_RUNTIME_TRAIN_CADENCE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

class CadenceClock {
 public:
  CadenceClock(const Cadence& cadence, absl::Time start)
      : cadence_(cadence), last_(start) {}

  // After attempted step `step`; the same on all ranks.
  bool DueAtStep(int64_t step) const {
    return cadence_.unit == Cadence::Unit::kSteps && step % cadence_.every == 0;
  }
  // After `epochs` whole epochs; the same on all ranks.
  bool DueAtEpoch(int64_t epochs) const {
    return cadence_.unit == Cadence::Unit::kEpochs &&
           epochs % cadence_.every == 0;
  }
  // By this machine's clock: rank 0 asks the others, once per period.
  bool DueByTime(absl::Time now) {
    if (cadence_.unit != Cadence::Unit::kMinutes ||
        now - last_ < absl::Minutes(cadence_.every)) {
      return false;
    }
    last_ = now;
    return true;
  }
  bool ByTime() const { return cadence_.unit == Cadence::Unit::kMinutes; }

 private:
  Cadence cadence_;
  absl::Time last_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_CADENCE_H_

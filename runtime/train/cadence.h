// When it is time for an eval or a checkpoint.
#ifndef HALFTONE_RUNTIME_TRAIN_CADENCE_H_
#define HALFTONE_RUNTIME_TRAIN_CADENCE_H_

#include <chrono>
#include <cstdint>

#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

class CadenceClock {
 public:
  // Not the time of day, which somebody may set.
  using Time = std::chrono::steady_clock::time_point;

  CadenceClock(const Cadence& cadence, Time start)
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
  bool DueByTime(Time now) {
    if (cadence_.unit != Cadence::Unit::kMinutes ||
        std::chrono::duration<double>(now - last_).count() <
            60.0 * static_cast<double>(cadence_.every)) {
      return false;
    }
    last_ = now;
    return true;
  }
  bool Never() const { return cadence_.unit == Cadence::Unit::kNever; }
  bool ByTime() const { return cadence_.unit == Cadence::Unit::kMinutes; }

 private:
  Cadence cadence_;
  Time last_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_CADENCE_H_

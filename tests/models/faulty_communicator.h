// A communicator that spoils one rank's share of one reduction.
#ifndef HALFTONE_TESTS_MODELS_FAULTY_COMMUNICATOR_H_
#define HALFTONE_TESTS_MODELS_FAULTY_COMMUNICATOR_H_

#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "runtime/collective/forwarding_communicator.h"

namespace halftone {
namespace runtime {

// Hands all on to `inner`, but writes `value` over this rank's first element
// before the reductions of gradients from the `first`-th to before the
// `end`-th (from 0). Gradients are what is scaled before it is summed, so the
// strategy must say gradient_scale: "pre", for more than one rank.
class FaultyCommunicator : public ForwardingCommunicator {
 public:
  FaultyCommunicator(std::unique_ptr<Communicator> inner, int64_t first,
                     int64_t end,
                     float value = std::numeric_limits<float>::infinity())
      : ForwardingCommunicator(std::move(inner)),
        first_(first),
        end_(end),
        value_(value) {}

  absl::Status AllReduce(void* data, int64_t count, DType dtype, ReduceOp op,
                         float pre_scale, Stream& stream) override {
    if (pre_scale != 1) {
      if (seen_ >= first_ && seen_ < end_) Spoil(data, dtype);
      ++seen_;
    }
    return ForwardingCommunicator::AllReduce(data, count, dtype, op, pre_scale,
                                             stream);
  }

 private:
  void Spoil(void* data, DType dtype) {
    const half f16(value_);
    const bfloat16 bf16(value_);
    switch (dtype) {
      case DType::kF16:
        std::memcpy(data, &f16, sizeof(f16));
        break;
      case DType::kBF16:
        std::memcpy(data, &bf16, sizeof(bf16));
        break;
      default:
        std::memcpy(data, &value_, sizeof(value_));
    }
  }

  int64_t first_, end_, seen_ = 0;
  float value_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_TESTS_MODELS_FAULTY_COMMUNICATOR_H_

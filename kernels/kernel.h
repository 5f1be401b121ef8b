// A kernel: ordered candidates for one key (op or fusion pattern, type-variable
// tuple, layout of the lead slot).
#ifndef HALFTONE_KERNELS_KERNEL_H_
#define HALFTONE_KERNELS_KERNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/bound_op.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {

// Pointers of one call, fixed for the life of an instance's step. Inputs of
// shape-only slots are null. An output whose schema says MayAlias may be the
// input's pointer.
struct Buffers {
  absl::Span<const void* const> inputs;  // flat, as BoundOp::inputs()
  absl::Span<void* const> outputs;
  void* workspace = nullptr;
};

// Belongs to one executor; holds plans, descriptors, scratch sizes. Enqueue
// allocates nothing, looks nothing up, never waits for the device.
class KernelInstance {
 public:
  virtual ~KernelInstance() = default;
  virtual absl::Status Enqueue(const Buffers& buffers,
                               runtime::Stream& stream) = 0;
};

struct Candidate {
  std::string name;  // "onednn", "reference", "direct"
  // Whether it runs this bound op; an empty function means always.
  std::function<bool(const BoundOp&)> supports;
  // Of a fused kernel: why `supports` says no, for people; empty: it does not
  // say.
  std::function<std::string(const BoundOp&)> refusal;
  // Scratch bytes for this bound op; empty: 0.
  std::function<int64_t(const BoundOp&)> workspace_bytes;
  bool deterministic = true;
  std::function<absl::StatusOr<std::unique_ptr<KernelInstance>>(
      const BoundOp&, runtime::Device&)>
      prepare;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_KERNEL_H_

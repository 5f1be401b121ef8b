// Runs kernels on a device, with guarded buffers.
#ifndef HALFTONE_TESTS_OPS_OP_RUNNER_H_
#define HALFTONE_TESTS_OPS_OP_RUNNER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/block.h"
#include "kernels/kernel_registry.h"
#include "runtime/device/device.h"

namespace halftone {

struct RunResult {
  // By flat output position: elements in logical row-major order, and what
  // the memory holds.
  std::vector<std::vector<double>> values;
  std::vector<std::string> bytes;
};

class OpRunner {
 public:
  // One of TestedDevices().
  static absl::StatusOr<std::unique_ptr<OpRunner>> Create(
      const std::string& device, int threads);

  // Where outputs lie: apart, or in the inputs that they may alias (MayAlias
  // slots and the outputs of View ops). kShifted: apart, at addresses that are
  // multiples of 8 bytes and no more.
  enum class Place { kApart, kAliased, kShifted };

  // Fails also if the kernel writes beyond an output or its workspace, or
  // into an input that no output shares, or if other orders of the device's
  // threads give a deterministic kernel other bits (kShifted: not tried).
  absl::StatusOr<RunResult> Run(const kernels::BoundOp& op,
                                const kernels::Candidate& candidate,
                                const std::vector<std::vector<double>>& inputs,
                                Place place = Place::kApart);

  // Runs all ops of a block in order, each with its first candidate, or its
  // last, which is the plainest. `values` holds the feeds and takes the
  // outputs.
  enum class Choice { kFirst, kPlainest };
  absl::Status RunBlock(const Block& block,
                        std::map<ValueId, std::vector<double>>* values,
                        Choice choice = Choice::kFirst);

  const std::string& device() const { return kind_; }
  kernels::BindContext context(int world = 1) const;

 private:
  OpRunner() = default;
  // In one order.
  absl::StatusOr<RunResult> RunOnce(const kernels::BoundOp& op,
                                    const kernels::Candidate& candidate,
                                    const std::vector<std::string>& packed,
                                    Place place);

  std::string kind_;
  int threads_ = 1;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Stream> stream_;
};

// Whether the kernels of an op or pattern take Place::kShifted, which no plan
// asks for: those of products and convolutions, which are libraries', do not.
bool MayBeShifted(absl::string_view op_or_pattern);
// Whether Place::kAliased differs from kApart for this op.
bool MayAlias(const kernels::BoundOp& op);

}  // namespace halftone

#endif  // HALFTONE_TESTS_OPS_OP_RUNNER_H_

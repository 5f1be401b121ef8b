// What tests of the executor share: a program, a rank, and the CPU's kernels
// as a fake device runs them.
#ifndef HALFTONE_RUNTIME_EXEC_EXECUTOR_TESTING_H_
#define HALFTONE_RUNTIME_EXEC_EXECUTOR_TESTING_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/ir/program.h"
#include "kernels/register_all.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/fake_device.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

// y = w * x summed over the batch and all ranks; w <- w - lr * g unless g has
// something that is not finite. Results: total (the sum of g), bad.
extern const char kTestProgram[];
inline constexpr int kAttempted = 1, kW = 2, kLow = 3;  // cells

std::unique_ptr<Program> ParseProgram(const std::string& text = kTestProgram);
SymbolValues Samples(int64_t n);
// Of two values per sample; `x` outlives it.
FeedData Feed(const std::vector<float>& x);

// The CPU's kernels for a fake device: each call is enqueued on its stream,
// "compute: matmul.3", so that it is captured, replayed and put off as a
// kernel's launch is.
const kernels::KernelRegistry& FakeKernels();
// The same for one candidate.
void RunOnFakeStreams(kernels::Candidate* candidate);

// An executor with what it borrows.
struct TestRank {
  explicit TestRank(
      const Program* program, const ExecutorOptions& options = {},
      std::unique_ptr<Device> own_device = MakeCpuDevice(0, 1),
      std::unique_ptr<Communicator> own_communicator = MakeSingleCommunicator(),
      const kernels::KernelRegistry& kernels = kernels::Kernels());
  std::vector<float> Cell(int index);

  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
  absl::Status status;
  std::unique_ptr<Executor> executor;
};

// Prepares the train entry and runs steps of one and of two samples in turn,
// read two late, one of them rejected; returns each one's total and the cell at
// the end, every bit of them.
std::string TrainAndTrace(TestRank& rank);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_EXEC_EXECUTOR_TESTING_H_

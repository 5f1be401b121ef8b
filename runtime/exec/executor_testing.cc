#include "runtime/exec/executor_testing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "graph/base/error.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

// A kernel whose work the stream does. As with a launch, the arguments are
// copied, and what runs it outlives the instance.
class StreamedKernel : public kernels::KernelInstance {
 public:
  StreamedKernel(std::string name,
                 std::shared_ptr<kernels::KernelInstance> kernel)
      : name_(std::move(name)), kernel_(std::move(kernel)) {}

  absl::Status Enqueue(const kernels::Buffers& buffers,
                       Stream& stream) override {
    return FakeDevice::EnqueueWork(
        stream, name_,
        [kernel = kernel_, workspace = buffers.workspace, &stream,
         inputs = std::vector<const void*>(buffers.inputs.begin(),
                                           buffers.inputs.end()),
         outputs = std::vector<void*>(buffers.outputs.begin(),
                                      buffers.outputs.end())] {
          const absl::Status status =
              kernel->Enqueue({inputs, outputs, workspace}, stream);
          EXPECT_TRUE(status.ok()) << status;
        });
  }

 private:
  std::string name_;
  std::shared_ptr<kernels::KernelInstance> kernel_;
};

}  // namespace

const char kTestProgram[] = R"(
program "p" dim B
cell @loss_scaling : f32[] scaler always init=constant(4)
cell @attempted : i64[] clock always init=constant(0)
cell w : f32[2] parameter trainable applied init=constant(3)
cell w.low : f16[2] derived(w) applied
entry train {
  feed x : f32[B,2]
  y: elementwise_mul(X=x, Y=w) -> (Out=y : f32[B,2])   forward
  logs: log(X=y) -> (Out=logs : f32[B,2])   forward
  g: reduce_sum(X=logs) -> (Out=g : f32[2]) {dim=[0]}   backward
  sum: all_reduce(X=[g]) -> (Out=[g.reduced : f32[2]]) {of="gradient"}   communicate
  lr: scale(X=@loss_scaling) -> (Out=lr : f32[]) {scale=0.25}   optimize
  check: check_finite(F32=[g.reduced], InvScale=lr) -> (FoundInf=bad : bool[], FirstBad=first : i32[], SquaredNorm=norm : f32[1])   optimize
  sgd: sgd(Param=[w], Grad=[g.reduced], LearningRate=lr, FoundInf=bad) -> (ParamOut=[w.next : f32[2]], LowOut=[low.next : f16[2]])   optimize
  tick: tick(X=@attempted) -> (Out=@attempted.next : i64[])   optimize
  total: reduce_sum(X=g.reduced) -> (Out=total : f32[])   optimize
  commit w <- w.next
  commit w.low <- low.next
  commit @attempted <- @attempted.next
  result total = total
  result bad = bad
}
entry init {
  feed @seed : i64[]
  three: init_constant() -> (Out=three : f32[2]) {shape=[2], dtype=f32, value=3}   forward
  four: init_constant() -> (Out=four : f32[]) {shape=[], dtype=f32, value=4}   forward
  commit w <- three
  commit @loss_scaling <- four
}
entry derive {
  low: cast(X=w) -> (Out=low : f16[2]) {to=f16}   forward
  commit w.low <- low
}
)";

std::unique_ptr<Program> ParseProgram(const std::string& text) {
  auto program = Parse(text, "test.ht");
  EXPECT_TRUE(program.ok()) << program.status();
  return std::move(*program);
}

SymbolValues Samples(int64_t n) {
  SymbolValues symbols{};
  symbols[0] = n;
  return symbols;
}

FeedData Feed(const std::vector<float>& x) {
  return {"x", absl::MakeSpan(reinterpret_cast<const uint8_t*>(x.data()),
                              x.size() * sizeof(float))};
}

void RunOnFakeStreams(kernels::Candidate* candidate) {
  candidate->prepare = [prepare = candidate->prepare](
                           const kernels::BoundOp& op, Device& device)
      -> absl::StatusOr<std::unique_ptr<kernels::KernelInstance>> {
    HT_ASSIGN_OR_RETURN(auto kernel, prepare(op, device));
    return {std::make_unique<StreamedKernel>(std::string(op.name()),
                                             std::move(kernel))};
  };
}

const kernels::KernelRegistry& FakeKernels() {
  static const auto* const registry = [] {
    auto* kernels = new kernels::KernelRegistry(kernels::Kernels());
    kernels->ForEach([](absl::string_view, kernels::Candidate& candidate) {
      RunOnFakeStreams(&candidate);
    });
    return kernels;
  }();
  return *registry;
}

TestRank::TestRank(const Program* program, const ExecutorOptions& options,
                   std::unique_ptr<Device> own_device,
                   std::unique_ptr<Communicator> own_communicator,
                   const kernels::KernelRegistry& kernels)
    : device(std::move(own_device)), communicator(std::move(own_communicator)) {
  auto made = Executor::Create(program, &kernels, device.get(),
                               communicator.get(), TuningTable(), options);
  status = made.status();
  if (made.ok()) executor = std::move(*made);
}

std::vector<float> TestRank::Cell(int index) {
  std::string bytes;
  EXPECT_TRUE(executor->ReadCell(CellId(index), &bytes).ok());
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
  return values;
}

std::string TrainAndTrace(TestRank& rank) {
  std::string trace;
  const auto one = rank.executor->Prepare("train", Samples(1));
  const auto two = rank.executor->Prepare("train", Samples(2));
  EXPECT_TRUE(rank.executor->Initialize(7).ok());
  std::vector<float> x(4);  // as a reader's batch: another one's bytes soon
  for (int step = 0; step < 12; ++step) {
    for (int i = 0; i < 4; ++i) x[i] = 1 + 0.02f * step + 0.01f * i;
    if (step == 8) x[0] = 0;  // log(0): a step that is rejected
    std::vector<float> mine(x.begin(), x.begin() + 2 * (1 + step % 2));
    const auto ticket =
        rank.executor->Execute(step % 2 == 0 ? *one : *two, {Feed(mine)});
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    std::fill(mine.begin(), mine.end(), -1.0f);
    if (step < 2) continue;
    const auto view = rank.executor->Read(step - 2);
    EXPECT_TRUE(view.ok()) << view.status();
    absl::StrAppendFormat(&trace, "%a ", view->Scalar("total"));
  }
  for (float w : rank.Cell(kW)) absl::StrAppendFormat(&trace, "%a ", w);
  return trace;
}

}  // namespace runtime
}  // namespace halftone

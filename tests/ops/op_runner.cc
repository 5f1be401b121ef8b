#include "tests/ops/op_runner.h"

#include <sanitizer/asan_interface.h>

#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "kernels/common/same_bytes.h"
#include "kernels/testing/kernel_run.h"
#include "tests/ops/devices.h"

namespace halftone {
namespace {

using kernels::BoundOp;
using kernels::TensorDesc;

// Bytes before and behind each buffer that no kernel may touch, and what they
// (and outputs before the run) hold.
constexpr int64_t kGuard = runtime::kAlignment;
constexpr char kGuardByte = '\x5e';

class GuardedBuffer {
 public:
  static absl::StatusOr<GuardedBuffer> Create(runtime::Device& device,
                                              runtime::Stream& stream,
                                              const std::string& content,
                                              int64_t shift = 0) {
    GuardedBuffer buffer;
    buffer.bytes_ = static_cast<int64_t>(content.size());
    buffer.before_ = kGuard + shift;
    HT_ASSIGN_OR_RETURN(
        buffer.memory_,
        device.Allocate(buffer.before_ + buffer.bytes_ + kGuard));
    const std::string all =
        absl::StrCat(std::string(buffer.before_, kGuardByte), content,
                     std::string(kGuard, kGuardByte));
    HT_RETURN_IF_ERROR(stream.Copy(buffer.memory_->data(), all.data(),
                                   static_cast<int64_t>(all.size())));
    HT_RETURN_IF_ERROR(stream.Synchronize());
    // AddressSanitizer, where it is built in, sees reads of guards too.
    if (device.kind() == "cpu") {
      ASAN_POISON_MEMORY_REGION(buffer.memory_->data(), buffer.before_);
      ASAN_POISON_MEMORY_REGION(
          static_cast<char*>(buffer.data()) + buffer.bytes_, kGuard);
    }
    return buffer;
  }

  void* data() const { return static_cast<char*>(memory_->data()) + before_; }

  // What it holds; an error if a guard has changed.
  absl::StatusOr<std::string> Read(runtime::Stream& stream,
                                   const std::string& name) const {
    std::string all(before_ + bytes_ + kGuard, '\0');
    ASAN_UNPOISON_MEMORY_REGION(memory_->data(), all.size());
    HT_RETURN_IF_ERROR(stream.Copy(&all[0], memory_->data(),
                                   static_cast<int64_t>(all.size())));
    HT_RETURN_IF_ERROR(stream.Synchronize());
    if (all.substr(0, before_) != std::string(before_, kGuardByte) ||
        all.substr(before_ + bytes_) != std::string(kGuard, kGuardByte)) {
      return CompilerBug("the kernel writes outside ", name, " of ", bytes_,
                         " bytes");
    }
    return all.substr(before_, bytes_);
  }

 private:
  std::unique_ptr<runtime::Memory> memory_;
  int64_t bytes_ = 0;
  int64_t before_ = kGuard;  // bytes of guard
};

std::string Packed(const TensorDesc& desc, const std::vector<double>& values) {
  std::string bytes(desc.bytes(), '\0');
  if (!bytes.empty()) kernels::StoreTensor(desc, values, &bytes[0]);
  return bytes;
}

// The input in whose storage each output may lie; -1: none, or one of another
// size.
std::vector<int> AliasedInputs(const BoundOp& op) {
  std::vector<int> aliased(op.outputs().size(), -1);
  for (const Slot& slot : op.schema().outputs()) {
    if (slot.may_alias == 0) continue;
    const std::string& input = op.schema().inputs()[slot.may_alias - 1].name;
    for (int i = 0; i < op.OutputCount(slot.name); ++i) {
      const int output = op.OutputIndex(slot.name) + i;
      const int in = op.InputIndex(input) + i;
      if (op.inputs()[in].bytes() != op.outputs()[output].bytes()) continue;
      aliased[output] = in;
    }
  }
  if (op.schema().view() && kernels::KeepsBytes(op)) aliased[0] = 0;
  return aliased;
}

struct OpBuffers {
  std::vector<GuardedBuffer> inputs, outputs;
  std::vector<int> aliased;  // by output
  std::unique_ptr<GuardedBuffer> workspace;
  std::vector<const void*> input_data;
  std::vector<void*> output_data;
};

absl::StatusOr<OpBuffers> MakeBuffers(const BoundOp& op,
                                      const kernels::Candidate& candidate,
                                      const std::vector<std::string>& inputs,
                                      OpRunner::Place place,
                                      runtime::Device& device,
                                      runtime::Stream& stream) {
  OpBuffers b;
  const int64_t shift = place == OpRunner::Place::kShifted ? 8 : 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HT_ASSIGN_OR_RETURN(
        auto buffer, GuardedBuffer::Create(device, stream, inputs[i], shift));
    const int slot = op.op().inputs.SlotOf(static_cast<int>(i));
    const bool shape_only = op.schema().inputs()[slot].shape_only();
    b.input_data.push_back(shape_only ? nullptr : buffer.data());
    b.inputs.push_back(std::move(buffer));
  }
  b.aliased = place == OpRunner::Place::kAliased
                  ? AliasedInputs(op)
                  : std::vector<int>(op.outputs().size(), -1);
  for (size_t i = 0; i < op.outputs().size(); ++i) {
    const std::string content(op.outputs()[i].bytes(), kGuardByte);
    HT_ASSIGN_OR_RETURN(auto buffer,
                        GuardedBuffer::Create(device, stream, content, shift));
    const int input = b.aliased[i];
    b.output_data.push_back(input < 0 ? buffer.data() : b.inputs[input].data());
    b.outputs.push_back(std::move(buffer));
  }
  const int64_t bytes =
      candidate.workspace_bytes ? candidate.workspace_bytes(op) : 0;
  HT_ASSIGN_OR_RETURN(
      auto workspace,
      GuardedBuffer::Create(device, stream, std::string(bytes, kGuardByte)));
  b.workspace = std::make_unique<GuardedBuffer>(std::move(workspace));
  return b;
}

absl::StatusOr<RunResult> ReadResult(const BoundOp& op,
                                     const std::vector<std::string>& inputs,
                                     const OpBuffers& b,
                                     runtime::Stream& stream) {
  std::vector<std::string> after;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HT_ASSIGN_OR_RETURN(after.emplace_back(),
                        b.inputs[i].Read(stream, absl::StrCat("input ", i)));
  }
  RunResult result;
  std::vector<bool> shared(inputs.size(), false);
  for (size_t i = 0; i < op.outputs().size(); ++i) {
    const int input = b.aliased[i];
    HT_ASSIGN_OR_RETURN(std::string bytes,
                        b.outputs[i].Read(stream, absl::StrCat("output ", i)));
    if (input >= 0) {
      bytes = after[input];
      shared[input] = true;
    }
    result.values.push_back(
        bytes.empty() ? std::vector<double>()
                      : kernels::LoadTensor(op.outputs()[i], bytes.data()));
    result.bytes.push_back(std::move(bytes));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!shared[i] && after[i] != inputs[i]) {
      return CompilerBug("the kernel writes to input ", i);
    }
  }
  HT_RETURN_IF_ERROR(b.workspace->Read(stream, "the workspace").status());
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OpRunner>> OpRunner::Create(
    const std::string& device, int threads) {
  auto runner = std::unique_ptr<OpRunner>(new OpRunner);
  runner->kind_ = device;
  runner->threads_ = threads;
  HT_ASSIGN_OR_RETURN(runner->device_, MakeTestedDevice(device, threads));
  HT_ASSIGN_OR_RETURN(runner->stream_,
                      runner->device_->CreateStream("compute"));
  return runner;
}

kernels::BindContext OpRunner::context(int world) const {
  kernels::BindContext context;
  context.world_size = world;
  context.threads = threads_;
  context.deterministic = false;
  context.target = device_->target();
  return context;
}

absl::StatusOr<RunResult> OpRunner::Run(
    const BoundOp& op, const kernels::Candidate& candidate,
    const std::vector<std::vector<double>>& inputs, Place place) {
  std::vector<std::string> packed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<double> values = inputs[i];
    values.resize(op.inputs()[i].elements());
    packed.push_back(Packed(op.inputs()[i], values));
  }
  // What other addresses change is no thread's order.
  if (place == Place::kShifted) return RunOnce(op, candidate, packed, place);
  std::optional<RunResult> first;
  HT_RETURN_IF_ERROR(InEveryOrder(kind_, [&]() -> absl::Status {
    HT_ASSIGN_OR_RETURN(RunResult result,
                        RunOnce(op, candidate, packed, place));
    if (!first.has_value()) {
      first = std::move(result);
    } else if (candidate.deterministic && result.bytes != first->bytes) {
      return CompilerBug("the kernel ", candidate.name, " of ", op.name(),
                         " gives other bits where its threads take another "
                         "order: a barrier is missing, or blocks meet");
    }
    return absl::OkStatus();
  }));
  return *std::move(first);
}

absl::StatusOr<RunResult> OpRunner::RunOnce(
    const BoundOp& op, const kernels::Candidate& candidate,
    const std::vector<std::string>& packed, Place place) {
  HT_ASSIGN_OR_RETURN(
      const OpBuffers b,
      MakeBuffers(op, candidate, packed, place, *device_, *stream_));
  HT_ASSIGN_OR_RETURN(const auto kernel, candidate.prepare(op, *device_));
  kernels::Buffers buffers;
  buffers.inputs = b.input_data;
  buffers.outputs = b.output_data;
  buffers.workspace = b.workspace->data();
  HT_RETURN_IF_ERROR(kernel->Enqueue(buffers, *stream_));
  return ReadResult(op, packed, b, *stream_);
}

absl::Status OpRunner::RunBlock(const Block& block,
                                std::map<ValueId, std::vector<double>>* values,
                                Choice choice) {
  for (OpId id : block.ops()) {
    const BoundOp op(block, block.op(id), SymbolValues(), context());
    HT_ASSIGN_OR_RETURN(const auto candidates, TestedKernels().Find(op));
    if (candidates.empty()) {
      return ModelError(op.name(), ": no candidate on ", kind_);
    }
    std::vector<std::vector<double>> inputs;
    for (ValueId value : op.op().inputs.all()) {
      inputs.push_back((*values)[value]);
    }
    const kernels::Candidate& candidate =
        *(choice == Choice::kFirst ? candidates.front() : candidates.back());
    HT_ASSIGN_OR_RETURN(RunResult result, Run(op, candidate, inputs));
    for (size_t i = 0; i < result.values.size(); ++i) {
      (*values)[op.op().outputs.all()[i]] = std::move(result.values[i]);
    }
  }
  return absl::OkStatus();
}

bool MayBeShifted(absl::string_view op_or_pattern) {
  return op_or_pattern != "mul" &&
         !absl::StrContains(op_or_pattern, "matmul") &&
         !absl::StrContains(op_or_pattern, "conv");
}

bool MayAlias(const BoundOp& op) {
  for (int input : AliasedInputs(op)) {
    if (input >= 0) return true;
  }
  return false;
}

}  // namespace halftone

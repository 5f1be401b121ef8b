#include "runtime/tune/bench.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/ir/op.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kPatternBytes = int64_t{1} << 20;

// Numbers without an order that a kernel could profit from.
template <typename T>
std::string Pattern() {
  std::string bytes(kPatternBytes, '\0');
  uint32_t state = 1;
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    state = state * 1664525u + 1013904223u;
    const T value(0.25f + 0.75f * static_cast<float>(state >> 9) / (1 << 23));
    std::memcpy(&bytes[at], &value, sizeof(T));
  }
  return bytes;
}

const std::string& PatternOf(DType dtype) {
  static const auto* const f16 = new std::string(Pattern<half>());
  static const auto* const bf16 = new std::string(Pattern<bfloat16>());
  static const auto* const f32 = new std::string(Pattern<float>());
  static const auto* const f64 = new std::string(Pattern<double>());
  switch (dtype) {
    case DType::kF16:
      return *f16;
    case DType::kBF16:
      return *bf16;
    case DType::kF64:
      return *f64;
    default:
      return *f32;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bench>> Bench::Create(Device& device,
                                                     int64_t flush_bytes) {
  HT_RETURN_IF_ERROR(device.Use());
  auto bench = absl::WrapUnique(new Bench(device));
  HT_ASSIGN_OR_RETURN(bench->stream_, device.CreateStream("compute"));
  HT_ASSIGN_OR_RETURN(bench->timer_, device.CreateTimer());
  HT_ASSIGN_OR_RETURN(bench->flush_, device.Allocate(flush_bytes));
  return bench;
}

absl::Status Bench::Fill(const kernels::TensorDesc& desc, char* to) {
  const int64_t bytes = desc.bytes();
  if (!IsFloat(desc.dtype)) return stream_->Fill(to, 0, bytes);
  const std::string& pattern = PatternOf(desc.dtype);
  for (int64_t at = 0; at < bytes; at += kPatternBytes) {
    HT_RETURN_IF_ERROR(stream_->Copy(to + at, pattern.data(),
                                     std::min(kPatternBytes, bytes - at)));
  }
  return absl::OkStatus();
}

absl::Status Bench::Take(const kernels::BoundOp& op, int64_t workspace_bytes) {
  int64_t bytes = Aligned(workspace_bytes);
  for (const kernels::TensorDesc& desc : op.inputs()) {
    bytes += Aligned(desc.bytes());
  }
  for (const kernels::TensorDesc& desc : op.outputs()) {
    bytes += Aligned(desc.bytes());
  }
  memory_.reset();
  HT_ASSIGN_OR_RETURN(memory_, device_.Allocate(bytes));
  char* at = static_cast<char*>(memory_->data());
  const auto take = [&at](int64_t size) {
    return std::exchange(at, at + Aligned(size));
  };
  workspace_ = workspace_bytes > 0 ? take(workspace_bytes) : nullptr;
  inputs_.clear();
  outputs_.clear();
  for (int s = 0, i = 0; s < op.op().inputs.slots(); ++s) {
    const bool shape_only = op.schema().inputs()[s].shape_only();
    for (size_t n = op.op().inputs.slot(s).size(); n > 0; --n, ++i) {
      const kernels::TensorDesc& desc = op.inputs()[i];
      char* const to = take(desc.bytes());
      HT_RETURN_IF_ERROR(Fill(desc, to));
      inputs_.push_back(shape_only ? nullptr : to);
    }
  }
  for (const kernels::TensorDesc& desc : op.outputs()) {
    outputs_.push_back(take(desc.bytes()));
  }
  return stream_->Synchronize();
}

absl::StatusOr<std::vector<double>> Bench::Times(
    kernels::KernelInstance& kernel, int runs) {
  const kernels::Buffers buffers = {inputs_, outputs_, workspace_};
  // The first call loads code and makes what a library keeps.
  for (int i = 0; i < 2; ++i) {
    HT_RETURN_IF_ERROR(kernel.Enqueue(buffers, *stream_));
  }
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    HT_RETURN_IF_ERROR(
        stream_->Fill(flush_->data(), ++flushed_, flush_->bytes()));
    HT_RETURN_IF_ERROR(timer_->Start(*stream_));
    HT_RETURN_IF_ERROR(kernel.Enqueue(buffers, *stream_));
    HT_RETURN_IF_ERROR(timer_->Stop(*stream_));
    HT_ASSIGN_OR_RETURN(const double passed, timer_->Microseconds());
    times.push_back(passed);
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace runtime
}  // namespace halftone

#include "kernels/testing/kernel_run.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "graph/base/philox.h"
#include "graph/schema/op_registry.h"
#include "gtest/gtest.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/strides.h"
#include "kernels/functors/cast.h"
#include "kernels/register_all.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {
namespace {

Tensor Make(DType dtype, std::vector<int64_t> dims,
            std::vector<double> values) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.values = std::move(values);
  return tensor;
}

struct FreeDeleter {
  void operator()(char* p) const { std::free(p); }
};
using Storage = std::unique_ptr<char, FreeDeleter>;

constexpr int64_t kGuardBytes = 64;  // behind each buffer

Storage Allocate(int64_t bytes) {
  const size_t padded = static_cast<size_t>(bytes / 64 + 2) * 64;
  Storage storage(static_cast<char*>(std::aligned_alloc(64, padded)));
  memset(storage.get(), 0xee, padded);  // nothing may rely on zeros
  return storage;
}

void ExpectGuard(const void* buffer, int64_t bytes) {
  const auto* guard = static_cast<const unsigned char*>(buffer) + bytes;
  const bool whole = std::all_of(guard, guard + kGuardBytes,
                                 [](unsigned char c) { return c == 0xee; });
  EXPECT_TRUE(whole) << "written behind a buffer of " << bytes << " bytes";
}

// body(logical index, offset in memory) for each element.
void ForEachElement(const TensorDesc& desc,
                    const std::function<void(int64_t, int64_t)>& body) {
  TensorDesc logical = desc;
  logical.layout = Layout::kRowMajor;
  const Nest nest = MakeNest(logical, StridesOf(desc));
  const int64_t n = desc.elements();
  if (n == 0) return;
  NestWalk walk(nest, 0);
  for (int64_t i = 0; i < n; ++i) {
    body(i, walk.offset());
    walk.Advance(1);
  }
}

}  // namespace

void StoreTensor(const TensorDesc& desc, const std::vector<double>& values,
                 void* data) {
  DispatchType(AnyTypes(), desc.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ForEachElement(desc, [&](int64_t i, int64_t offset) {
      static_cast<T*>(data)[offset] = functors::Cast<T>(values[i]);
    });
  });
}

std::vector<double> LoadTensor(const TensorDesc& desc, const void* data) {
  std::vector<double> values(desc.elements());
  DispatchType(AnyTypes(), desc.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ForEachElement(desc, [&](int64_t i, int64_t offset) {
      values[i] = functors::Cast<double>(static_cast<const T*>(data)[offset]);
    });
  });
  return values;
}

Tensor F32(std::vector<int64_t> dims, std::vector<double> values) {
  return Make(DType::kF32, std::move(dims), std::move(values));
}
Tensor F16(std::vector<int64_t> dims, std::vector<double> values) {
  return Make(DType::kF16, std::move(dims), std::move(values));
}
Tensor BF16(std::vector<int64_t> dims, std::vector<double> values) {
  return Make(DType::kBF16, std::move(dims), std::move(values));
}
Tensor I64(std::vector<int64_t> dims, std::vector<double> values) {
  return Make(DType::kI64, std::move(dims), std::move(values));
}
Tensor Scalar(double value, DType dtype) { return Make(dtype, {}, {value}); }

std::vector<double> Draws(int64_t n, double low, double high) {
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) {
    const Philox4 draw = PhiloxDraw(n, 0, 0, static_cast<uint32_t>(i));
    values[i] = low + (high - low) * ToUniform(draw.x[0]);
  }
  return values;
}

std::vector<double> Eighths(int64_t n, int64_t salt) {
  std::vector<double> values = Draws(n + salt, -8, 8);
  values.resize(n);
  for (double& value : values) value = std::round(value) / 8;
  return values;
}

std::vector<double> Rounded(DType dtype, const std::vector<double>& values) {
  std::vector<double> rounded(values.size());
  DispatchType(AnyTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) {
      rounded[i] = functors::Cast<double>(functors::Cast<T>(values[i]));
    }
  });
  return rounded;
}

struct KernelRun::State {
  explicit State(absl::string_view op_name)
      : entry(program.AddEntry("test")), builder(&entry.block(), op_name) {
    builder.Name("op");
    schema = Ops().Find(op_name);
  }

  Program program;
  Entry& entry;
  OpBuilder builder;
  const OpSchema* schema;
  std::map<ValueId, std::vector<double>> literals;
  std::vector<std::pair<std::string, std::string>> aliases;
  BindContext context;
  int named_outputs = 0;
  std::string wanted;  // candidate; empty: the first
  std::string chosen;

  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Stream> stream;
  std::unique_ptr<BoundOp> bound;
  std::unique_ptr<KernelInstance> kernel;
  std::vector<Storage> storage, retired;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  Storage workspace;
  int64_t workspace_bytes = 0;

  void Prepare();
  void MakeBuffers();
};

void KernelRun::State::Prepare() {
  auto op = builder.Build();
  ASSERT_TRUE(op.ok()) << op.status();
  const Block& block = entry.block();
  bound =
      std::make_unique<BoundOp>(block, block.op(*op), SymbolValues(), context);
  auto candidates = Kernels().Find(*bound);
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  const auto found = std::find_if(candidates->begin(), candidates->end(),
                                  [this](const Candidate* c) {
                                    return wanted.empty() || c->name == wanted;
                                  });
  ASSERT_NE(found, candidates->end()) << "no candidate " << wanted;
  const Candidate& candidate = **found;
  chosen = candidate.name;
  device = runtime::MakeCpuDevice(0, context.threads);
  stream = *device->CreateStream("compute");
  if (candidate.workspace_bytes) {
    workspace_bytes = candidate.workspace_bytes(*bound);
    workspace = Allocate(workspace_bytes);
  }
  auto prepared = candidate.prepare(*bound, *device);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  kernel = *std::move(prepared);
  MakeBuffers();
}

void KernelRun::State::MakeBuffers() {
  const Op& op = bound->op();
  for (size_t i = 0; i < bound->inputs().size(); ++i) {
    const TensorDesc& desc = bound->inputs()[i];
    const int slot = op.inputs.SlotOf(static_cast<int>(i));
    storage.push_back(Allocate(desc.bytes()));
    StoreTensor(desc, literals[op.inputs.all()[i]], storage.back().get());
    const bool shape_only = schema->inputs()[slot].shape_only();
    inputs.push_back(shape_only ? nullptr : storage.back().get());
  }
  for (const TensorDesc& desc : bound->outputs()) {
    storage.push_back(Allocate(desc.bytes()));
    outputs.push_back(storage.back().get());
  }
  for (const auto& alias : aliases) {
    for (int i = 0; i < bound->OutputCount(alias.first); ++i) {
      outputs[bound->OutputIndex(alias.first) + i] =
          const_cast<void*>(inputs[bound->InputIndex(alias.second) + i]);
    }
  }
}

KernelRun::KernelRun(absl::string_view op)
    : state_(std::make_unique<State>(op)) {}
KernelRun::~KernelRun() = default;

KernelRun& KernelRun::In(absl::string_view slot, Tensor tensor) {
  TensorType type;
  type.dtype = tensor.dtype;
  type.layout = tensor.layout;
  for (int64_t dim : tensor.dims) type.dims.push_back(Dim(dim));
  const std::string name = absl::StrCat("in", state_->literals.size());
  const ValueId value = state_->entry.block().AddFeed(name, type);
  tensor.values.resize(type.Elements().coefficient());
  state_->literals[value] = std::move(tensor.values);
  state_->builder.In(slot, value);
  return *this;
}
KernelRun& KernelRun::Attr(absl::string_view name, AttrValue value) {
  state_->builder.Attr(name, std::move(value));
  return *this;
}
KernelRun& KernelRun::Out(absl::string_view slot, int members) {
  for (int i = 0; i < members; ++i) {
    state_->builder.Out(slot, absl::StrCat("out", state_->named_outputs++));
  }
  return *this;
}
KernelRun& KernelRun::Bind(absl::string_view type_var, DType dtype) {
  state_->builder.Bind(type_var, dtype);
  return *this;
}
KernelRun& KernelRun::Alias(absl::string_view output, absl::string_view input) {
  state_->aliases.emplace_back(output, input);
  return *this;
}
KernelRun& KernelRun::Threads(int threads) {
  state_->context.threads = threads;
  return *this;
}
KernelRun& KernelRun::World(int world_size) {
  state_->context.world_size = world_size;
  return *this;
}
KernelRun& KernelRun::Use(absl::string_view candidate) {
  state_->wanted = std::string(candidate);
  return *this;
}

std::string KernelRun::CandidateName() {
  Run();
  return state_->chosen;
}

void KernelRun::Run() {
  if (state_->kernel != nullptr) return;
  state_->Prepare();
  if (state_->kernel == nullptr) return;
  Enqueue();
}

void KernelRun::Enqueue() {
  Buffers buffers;
  buffers.inputs = state_->inputs;
  buffers.outputs = state_->outputs;
  buffers.workspace = state_->workspace.get();
  const absl::Status status = state_->kernel->Enqueue(buffers, *state_->stream);
  EXPECT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < state_->outputs.size(); ++i) {
    ExpectGuard(state_->outputs[i], state_->bound->outputs()[i].bytes());
  }
  if (state_->workspace != nullptr) {
    ExpectGuard(state_->workspace.get(), state_->workspace_bytes);
  }
}

void KernelRun::SpoilWorkspace() {
  Run();
  if (state_->workspace == nullptr) return;
  memset(state_->workspace.get(), 0xff, state_->workspace_bytes);
}

void KernelRun::MoveBuffers() {
  Run();
  State& s = *state_;
  if (s.kernel == nullptr) return;
  // Storage holds the inputs first.
  for (size_t i = 0; i < s.bound->inputs().size(); ++i) {
    memset(s.storage[i].get(), 0xff, s.bound->inputs()[i].bytes());
  }
  if (s.workspace != nullptr) {
    s.retired.push_back(std::move(s.workspace));
    s.workspace = Allocate(s.workspace_bytes);
  }
  for (Storage& storage : s.storage) s.retired.push_back(std::move(storage));
  s.storage.clear();
  s.inputs.clear();
  s.outputs.clear();
  s.MakeBuffers();
}

std::vector<double> KernelRun::Get(absl::string_view slot, int member) {
  Run();
  if (state_->kernel == nullptr) return {};
  const int index = state_->bound->OutputIndex(slot) + member;
  return LoadTensor(state_->bound->outputs()[index], state_->outputs[index]);
}

int64_t KernelRun::TensorBytes() {
  Run();
  if (state_->kernel == nullptr) return 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < state_->inputs.size(); ++i) {
    if (state_->inputs[i] == nullptr) continue;
    bytes += state_->bound->inputs()[i].bytes();
  }
  for (const TensorDesc& desc : state_->bound->outputs()) bytes += desc.bytes();
  return bytes;
}

std::string KernelRun::Bytes(absl::string_view slot, int member) {
  Run();
  if (state_->kernel == nullptr) return "";
  const int index = state_->bound->OutputIndex(slot) + member;
  return std::string(static_cast<const char*>(state_->outputs[index]),
                     state_->bound->outputs()[index].bytes());
}

}  // namespace kernels
}  // namespace halftone

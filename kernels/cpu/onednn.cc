#include "kernels/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "graph/base/error.h"
#include "kernels/common/strides.h"
#include "kernels/cpu/blocked_filter.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/functors/elementwise.h"

namespace halftone {
namespace kernels {

const dnnl::engine& OnednnEngine() {
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

void OnednnUseThreads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

void OnednnExpectRoom() {
#ifndef ABSL_HAVE_ADDRESS_SANITIZER  // its own books of them take it 50 ms
  // For code 16 MiB were not enough; meanwhile another thread's first
  // allocation may take the 128 MiB that glibc cuts a heap of 64 MiB from.
  constexpr size_t kBytes = size_t{192} << 20;
  ::operator delete(::operator new(kBytes));
#endif
}

namespace {

using dnnl::memory;

// How one operand gets to the primitive. Offsets are in the workspace; -1: the
// step is not needed.
struct Route {
  OnednnOperand operand;
  memory::desc plain;   // as it lies, in the type that the library computes in
  memory::desc wanted;  // by the primitive
  // How it gets from the one to the other; none: by a reorder of the library's.
  std::optional<BlockedFilter> filter;
  int64_t elements = 0, bytes = 0;
  int64_t f32_offset = -1, wanted_offset = -1;
};

// Everything about a primitive but its memory.
struct Layout {
  std::vector<Route> routes;
  dnnl::primitive_desc primitive;
  std::vector<dnnl::reorder::primitive_desc> reorders;  // by route; may be null
  int64_t scratchpad_offset = 0, workspace_bytes = 0;
  bool relu = false;
};

bool ComputesInBf16(const OnednnSpec& spec) {
  for (const OnednnOperand& operand : spec.operands) {
    if (!operand.output && operand.dtype != DType::kBF16) return false;
  }
  return OnednnHasBf16();
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Route MakeRoute(const OnednnOperand& operand, bool bf16) {
  Route route;
  route.operand = operand;
  route.elements = 1;
  for (int64_t dim : operand.dims) route.elements *= dim;
  route.bytes = route.elements * SizeOf(operand.dtype);
  const bool native = bf16 && operand.dtype == DType::kBF16;
  route.plain = memory::desc(
      operand.dims, native ? memory::data_type::bf16 : memory::data_type::f32,
      operand.strides);
  if (!native && operand.dtype != DType::kF32) route.f32_offset = 0;
  return route;
}

// By what the library calls the implementation: "jit:avx2", "brgconv:...".
bool IsOwnCode(const dnnl::primitive_desc& primitive) {
  const absl::string_view name = primitive.impl_info_str();
  return absl::StartsWith(name, "jit") || absl::StartsWith(name, "brg");
}

// Operands whose format is `as_it_lies` or stricter are taken so.
// Throws dnnl::error.
Layout MakeLayoutIn(const OnednnSpec& spec, bool bf16,
                    OnednnFormat as_it_lies) {
  Layout layout;
  std::vector<memory::desc> descs;
  for (const OnednnOperand& operand : spec.operands) {
    layout.routes.push_back(MakeRoute(operand, bf16));
    const Route& route = layout.routes.back();
    descs.push_back(operand.format > as_it_lies
                        ? memory::desc(operand.dims, route.plain.data_type(),
                                       memory::format_tag::any)
                        : route.plain);
  }
  layout.relu = spec.relu;
  layout.primitive = spec.describe(OnednnEngine(), descs, UserScratchpad());
  int64_t end = 0;
  int64_t scratchpad = layout.primitive.scratchpad_desc().get_size();
  const auto take = [&end](int64_t bytes) {
    const int64_t offset = end;
    end += runtime::Aligned(bytes);
    return offset;
  };
  for (Route& route : layout.routes) {
    route.wanted =
        layout.primitive.query_md(dnnl::query::exec_arg_md, route.operand.arg);
    if (route.f32_offset == 0) {
      route.f32_offset = take(route.elements * int64_t{sizeof(float)});
    }
    layout.reorders.emplace_back();
    if (route.wanted == route.plain) continue;
    route.wanted_offset = take(static_cast<int64_t>(route.wanted.get_size()));
    const bool out = route.operand.output;
    route.filter = BlockedFilter::Of(route.plain, route.wanted);
    if (out && route.filter && !route.filter->CanUnpack()) route.filter.reset();
    if (route.filter) continue;
    layout.reorders.back() = dnnl::reorder::primitive_desc(
        OnednnEngine(), out ? route.wanted : route.plain, OnednnEngine(),
        out ? route.plain : route.wanted, UserScratchpad());
    scratchpad = std::max<int64_t>(
        scratchpad, layout.reorders.back().scratchpad_desc().get_size());
  }
  layout.scratchpad_offset = take(scratchpad);
  layout.workspace_bytes = end;
  return layout;
}

// Want of memory is no reason to choose another kernel.
void RethrowOutOfMemory(const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
}

// Throws dnnl::error.
Layout MakeLayoutIn(const OnednnSpec& spec, bool bf16) {
  const auto& operands = spec.operands;
  if (std::any_of(operands.begin(), operands.end(), [](const auto& operand) {
        return operand.format == OnednnFormat::kBestAsItLies;
      })) {
    try {
      Layout layout = MakeLayoutIn(spec, bf16, OnednnFormat::kBestAsItLies);
      if (IsOwnCode(layout.primitive)) return layout;
    } catch (const dnnl::error& error) {
      RethrowOutOfMemory(error);
    }
  }
  return MakeLayoutIn(spec, bf16, OnednnFormat::kAsItLies);
}

// In bf16 where the processor and the library have it, else in f32. Throws
// dnnl::error.
Layout MakeLayout(const OnednnSpec& spec) {
  if (ComputesInBf16(spec)) {
    try {
      return MakeLayoutIn(spec, /*bf16=*/true);
    } catch (const dnnl::error& error) {
      RethrowOutOfMemory(error);
      // The library lacks this very primitive.
    }
  }
  return MakeLayoutIn(spec, /*bf16=*/false);
}

// A primitive with the arguments of a call; pointers change, handles stay.
class Call {
 public:
  Call() = default;
  Call(const dnnl::primitive& primitive,
       const std::vector<std::pair<int, memory>>& arguments)
      : primitive_(primitive) {
    for (const auto& [arg, memory] : arguments) {
      arguments_.push_back({arg, memory.get()});
    }
  }
  explicit operator bool() const { return !arguments_.empty(); }
  dnnl_status_t Run(dnnl_stream_t stream) const {
    return dnnl_primitive_execute(primitive_.get(), stream,
                                  static_cast<int>(arguments_.size()),
                                  arguments_.data());
  }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

void Relu(float* x, int64_t n) {
  ForIsa([=] {
    for (int64_t i = 0; i < n; ++i) x[i] = functors::ReluOp()(x[i]);
  });
}

// The same on bits: what is negative and not a NaN becomes 0.
void Relu(bfloat16* x, int64_t n) {
  uint16_t* bits = &x->bits;
  static_assert(sizeof(*x) == sizeof(*bits), "bfloat16 is its bits");
  ForIsa([=] {
    for (int64_t i = 0; i < n; ++i) {
      const bool zero = bits[i] >= 0x8000 && bits[i] <= 0xff80;
      bits[i] = zero ? uint16_t{0} : bits[i];
    }
  });
}

class OnednnKernel : public KernelInstance {
 public:
  // Throws dnnl::error.
  OnednnKernel(const std::string& name, Layout layout)
      : name_(name), layout_(std::move(layout)), stream_(OnednnEngine()) {
    OnednnExpectRoom();
    scratchpad_ = memory(layout_.primitive.scratchpad_desc(), OnednnEngine(),
                         DNNL_MEMORY_NONE);
    std::vector<std::pair<int, memory>> arguments = {
        {DNNL_ARG_SCRATCHPAD, scratchpad_}};
    for (size_t i = 0; i < layout_.routes.size(); ++i) {
      const Route& route = layout_.routes[i];
      operands_.emplace_back();
      Operand& operand = operands_.back();
      operand.wanted = memory(route.wanted, OnednnEngine(), DNNL_MEMORY_NONE);
      arguments.emplace_back(route.operand.arg, operand.wanted);
      if (route.wanted_offset < 0) continue;
      operand.plain = memory(route.plain, OnednnEngine(), DNNL_MEMORY_NONE);
      if (route.filter) continue;
      const bool out = route.operand.output;
      operand.reorder =
          Call(dnnl::reorder(layout_.reorders[i]),
               {{DNNL_ARG_FROM, out ? operand.wanted : operand.plain},
                {DNNL_ARG_TO, out ? operand.plain : operand.wanted},
                {DNNL_ARG_SCRATCHPAD, scratchpad_}});
    }
    call_ = Call(dnnl::primitive(layout_.primitive), arguments);
  }

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    OnednnUseThreads(stream.threads());
    if (!ran_) OnednnExpectRoom();
    ran_ = true;
    if (Moved(buffers)) Point(buffers);
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (layout_.routes[i].operand.output) continue;
      HT_RETURN_IF_ERROR(Load(i, stream.threads()));
    }
    HT_RETURN_IF_ERROR(Check(call_.Run(stream_.get())));
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!layout_.routes[i].operand.output) continue;
      HT_RETURN_IF_ERROR(Store(i, stream.threads()));
    }
    return absl::OkStatus();
  }

 private:
  struct Operand {
    memory plain, wanted;
    Call reorder;
    char* stored = nullptr;  // in the caller's buffer
    char* f32 = nullptr;     // staged
  };

  static const void* Stored(const OnednnOperand& operand,
                            const Buffers& buffers) {
    return operand.output ? buffers.outputs[operand.position]
                          : buffers.inputs[operand.position];
  }

  // Pointers seldom change, and handing one over costs: the library may write
  // the padding of a blocked format.
  bool Moved(const Buffers& buffers) const {
    if (buffers.workspace != workspace_) return true;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].stored != Stored(layout_.routes[i].operand, buffers)) {
        return true;
      }
    }
    return false;
  }

  void Point(const Buffers& buffers) {
    char* workspace = static_cast<char*>(buffers.workspace);
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Route& route = layout_.routes[i];
      Operand& operand = operands_[i];
      operand.stored = const_cast<char*>(
          static_cast<const char*>(Stored(route.operand, buffers)));
      operand.f32 =
          route.f32_offset < 0 ? nullptr : workspace + route.f32_offset;
      char* plain = operand.f32 != nullptr ? operand.f32 : operand.stored;
      if (route.wanted_offset < 0) {
        operand.wanted.set_data_handle(plain);
      } else {
        operand.plain.set_data_handle(plain);
        operand.wanted.set_data_handle(workspace + route.wanted_offset);
      }
    }
    scratchpad_.set_data_handle(workspace + layout_.scratchpad_offset);
    workspace_ = buffers.workspace;
  }

  absl::Status Load(size_t i, int threads) {
    const Route& route = layout_.routes[i];
    const Operand& operand = operands_[i];
    if (operand.f32 != nullptr) {
      const DType dtype = route.operand.dtype;
      ParallelFor(
          threads, route.elements, kMapGrain, [&](int64_t begin, int64_t end) {
            ToFloat(dtype, operand.stored + begin * SizeOf(dtype),
                    reinterpret_cast<float*>(operand.f32) + begin, end - begin);
          });
    }
    if (route.filter) {
      route.filter->Pack(operand.plain.get_data_handle(),
                         operand.wanted.get_data_handle(), threads);
    }
    return operand.reorder ? Check(operand.reorder.Run(stream_.get()))
                           : absl::OkStatus();
  }

  absl::Status Store(size_t i, int threads) {
    const Route& route = layout_.routes[i];
    const Operand& operand = operands_[i];
    if (route.filter) {
      route.filter->Unpack(operand.wanted.get_data_handle(),
                           operand.plain.get_data_handle(), threads);
    }
    if (operand.reorder) {
      HT_RETURN_IF_ERROR(Check(operand.reorder.Run(stream_.get())));
    }
    if (operand.f32 == nullptr && !layout_.relu) return absl::OkStatus();
    ParallelFor(threads, route.elements, kMapGrain,
                [&](int64_t begin, int64_t end) {
                  ForBlocks(begin, end, [&](int64_t at, int64_t n) {
                    StoreBlock(route.operand.dtype, operand, at, n);
                  });
                });
    return absl::OkStatus();
  }

  void StoreBlock(DType dtype, const Operand& operand, int64_t at,
                  int64_t n) const {
    char* stored = operand.stored + at * SizeOf(dtype);
    if (operand.f32 != nullptr) {
      float* from = reinterpret_cast<float*>(operand.f32) + at;
      if (layout_.relu) Relu(from, n);
      FromFloat(dtype, from, stored, n);
    } else if (dtype == DType::kF32) {
      Relu(reinterpret_cast<float*>(stored), n);
    } else {
      Relu(reinterpret_cast<bfloat16*>(stored), n);
    }
  }

  absl::Status Check(dnnl_status_t status) const {
    if (status == dnnl_success) return absl::OkStatus();
    if (status == dnnl_out_of_memory) {
      return OutOfMemoryError(name_, ": oneDNN has no memory left");
    }
    return DeviceError(name_, ": oneDNN failed with status ", int{status});
  }

  std::string name_;
  Layout layout_;
  dnnl::stream stream_;
  std::vector<Operand> operands_;
  memory scratchpad_;
  Call call_;
  bool ran_ = false;
  const void* workspace_ = nullptr;
};

}  // namespace

namespace {

bool Has(dnnl_cpu_isa_t wanted) {
  const unsigned isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (isa & wanted) == static_cast<unsigned>(wanted);
}

}  // namespace

bool OnednnHasAvx2() { return Has(dnnl_cpu_isa_avx2); }
bool OnednnHasAvx512() { return Has(dnnl_cpu_isa_avx512_core); }
bool OnednnHasBf16() { return Has(dnnl_cpu_isa_avx512_core_bf16); }
bool OnednnHasAmx() { return Has(dnnl_cpu_isa_avx512_core_amx); }

OnednnOperand MakeOperand(int arg, int position, bool output,
                          const TensorDesc& desc) {
  OnednnOperand operand;
  operand.arg = arg;
  operand.position = position;
  operand.output = output;
  operand.dtype = desc.dtype;
  operand.dims.assign(desc.dims.begin(), desc.dims.end());
  const Extents strides = StridesOf(desc);
  operand.strides.assign(strides.begin(), strides.end());
  return operand;
}

namespace {

// Of empty operands oneDNN makes nothing at all (a product over no columns
// is its bias), and it takes an empty batch for one of a single matrix.
bool HoldsNothing(const TensorDesc& desc) { return desc.elements() == 0; }

// The library divides by zero and worse where a dim, or the dims before the
// last one together, are beyond 31 bits.
bool AnyIsTooLarge(const BoundOp& op) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto too_large = [](const TensorDesc& desc) {
    if (desc.rank() == 0) return false;
    for (const int64_t dim : desc.dims) {
      if (dim > kMost) return true;
    }
    const int64_t last = desc.dims[desc.rank() - 1];
    return last > 0 && desc.elements() / last > kMost;
  };
  return std::any_of(op.inputs().begin(), op.inputs().end(), too_large) ||
         std::any_of(op.outputs().begin(), op.outputs().end(), too_large);
}

bool AnyIsEmpty(const BoundOp& op) {
  return std::any_of(op.inputs().begin(), op.inputs().end(), HoldsNothing) ||
         std::any_of(op.outputs().begin(), op.outputs().end(), HoldsNothing);
}

}  // namespace

Candidate OnednnCandidate(const std::string& name, MakeOnednnSpec make) {
  Candidate candidate;
  candidate.name = name;
  candidate.supports = [make](const BoundOp& op) {
    // The reference's work.
    if (AnyIsEmpty(op) || AnyIsTooLarge(op)) return false;
    try {
      OnednnUseThreads(op.context().threads);
      MakeLayout(make(op));
      return true;
    } catch (const dnnl::error& error) {
      RethrowOutOfMemory(error);
      return false;
    }
  };
  candidate.workspace_bytes = [make](const BoundOp& op) {
    OnednnUseThreads(op.context().threads);
    return MakeLayout(make(op)).workspace_bytes;
  };
  candidate.prepare = [make](const BoundOp& op, runtime::Device&)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    try {
      OnednnUseThreads(op.context().threads);
      return {std::make_unique<OnednnKernel>(std::string(op.name()),
                                             MakeLayout(make(op)))};
    } catch (const dnnl::error& error) {
      RethrowOutOfMemory(error);
      return DeviceError(op.name(), ": oneDNN: ", error.what());
    }
  };
  return candidate;
}

}  // namespace kernels
}  // namespace halftone

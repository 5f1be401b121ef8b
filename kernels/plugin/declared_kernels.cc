#include "kernels/plugin/declared_kernels.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/layout.h"
#include "graph/schema/op_registry.h"
#include "kernels/plugin/declared_attrs.h"

namespace halftone {
namespace kernels {
namespace {

// The tensors of one side of an op, slot by slot.
struct Side {
  std::vector<HalftoneTensor> tensors;
  std::vector<std::vector<int64_t>> dims;
  std::vector<int32_t> begin = {0};

  Side(absl::Span<const TensorDesc> descs, absl::Span<const Slot> slots,
       const std::function<int(absl::string_view)>& count) {
    for (const TensorDesc& desc : descs) {
      dims.emplace_back(desc.dims.begin(), desc.dims.end());
    }
    for (size_t i = 0; i < descs.size(); ++i) {
      HalftoneTensor tensor{};
      tensor.dtype = static_cast<int32_t>(descs[i].dtype);
      tensor.rank = descs[i].rank();
      tensor.dims = dims[i].data();
      tensor.elements = descs[i].elements();
      tensor.channels_last = descs[i].layout == Layout::kChannelsLast ? 1 : 0;
      tensors.push_back(tensor);
    }
    for (const Slot& slot : slots) {
      begin.push_back(begin.back() + count(slot.name));
    }
  }
};

// A kernel's call with all that does not change from step to step.
class LibraryKernel : public KernelInstance {
 public:
  LibraryKernel(const HalftoneKernel& kernel, const BoundOp& op)
      : kernel_(kernel),
        what_(absl::StrCat(op.name(), " (", op.type(), ")")),
        inputs_(op.inputs(), op.schema().inputs(),
                [&op](absl::string_view slot) { return op.InputCount(slot); }),
        outputs_(
            op.outputs(), op.schema().outputs(),
            [&op](absl::string_view slot) { return op.OutputCount(slot); }),
        attrs_(op.schema(), [&op](absl::string_view name) -> const AttrValue& {
          return GetAttr(op.op(), name);
        }) {
    call_.inputs = inputs_.tensors.data();
    call_.input_begin = inputs_.begin.data();
    call_.outputs = outputs_.tensors.data();
    call_.output_begin = outputs_.begin.data();
    call_.attrs = attrs_.all().data();
    call_.input_slots = static_cast<int32_t>(inputs_.begin.size()) - 1;
    call_.output_slots = static_cast<int32_t>(outputs_.begin.size()) - 1;
    call_.attr_count = static_cast<int32_t>(attrs_.all().size());
    call_.threads = op.context().threads;
    call_.error = error_;
    call_.error_size = sizeof(error_);
  }

  // Errors: the kernel's own, or fewer bytes than none.
  absl::StatusOr<int64_t> Workspace() {
    int64_t bytes = 0;
    if (kernel_.workspace == nullptr) return bytes;
    if (kernel_.workspace(&call_, kernel_.data, &bytes) != 0) return Failed();
    if (bytes >= 0) return bytes;
    return ModelError(what_, ": its kernel wants ", bytes,
                      " bytes of workspace; expected 0 or more");
  }

  absl::Status Prepare() {
    HT_ASSIGN_OR_RETURN(call_.workspace_bytes, Workspace());
    return absl::OkStatus();
  }

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    for (size_t i = 0; i < buffers.inputs.size(); ++i) {
      inputs_.tensors[i].data = const_cast<void*>(buffers.inputs[i]);
    }
    for (size_t i = 0; i < buffers.outputs.size(); ++i) {
      outputs_.tensors[i].data = buffers.outputs[i];
    }
    call_.workspace = buffers.workspace;
    call_.stream = stream.native();
    call_.threads = stream.threads();
    if (kernel_.run(&call_, kernel_.data) != 0) return Failed();
    return absl::OkStatus();
  }

 private:
  absl::Status Failed() {
    error_[sizeof(error_) - 1] = '\0';
    return ModelError(
        what_, ": its kernel says: ", error_[0] == '\0' ? "it failed" : error_);
  }

  const HalftoneKernel& kernel_;
  std::string what_;
  Side inputs_, outputs_;
  AttrsForLibrary attrs_;
  char error_[512] = {};
  HalftoneKernelCall call_{};
};

Candidate CandidateOf(const std::string& name, const HalftoneKernel& kernel) {
  Candidate candidate;
  candidate.name = name;
  candidate.deterministic = kernel.deterministic != 0;
  if (kernel.workspace != nullptr) {
    candidate.workspace_bytes = [&kernel](const BoundOp& op) {
      // Where it says no, Prepare says why.
      return LibraryKernel(kernel, op).Workspace().value_or(0);
    };
  }
  candidate.prepare = [&kernel](const BoundOp& op, runtime::Device&)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    auto instance = std::make_unique<LibraryKernel>(kernel, op);
    HT_RETURN_IF_ERROR(instance->Prepare());
    return std::unique_ptr<KernelInstance>(std::move(instance));
  };
  return candidate;
}

}  // namespace

void AddKernelsOf(const HalftoneOpLibrary& library, absl::string_view device,
                  KernelRegistry* registry) {
  for (int i = 0; i < library.op_count; ++i) {
    const HalftoneOp& op = library.ops[i];
    const OpSchema& schema = *Ops().Find(op.name);
    std::vector<Layout> layouts = {Layout::kRowMajor};
    if (schema.layout() == LayoutRule::kAny) {
      layouts.push_back(Layout::kChannelsLast);
    }
    for (int k = 0; k < op.kernel_count; ++k) {
      const HalftoneKernel& kernel = op.kernels[k];
      if (kernel.device != device) continue;
      std::vector<DType> binding;
      for (int d = 0; d < kernel.dtype_count; ++d) {
        binding.push_back(static_cast<DType>(kernel.dtypes[d]));
      }
      for (Layout layout : layouts) {
        registry->Add(op.name, binding, layout,
                      CandidateOf(library.name, kernel));
      }
    }
  }
}

}  // namespace kernels
}  // namespace halftone

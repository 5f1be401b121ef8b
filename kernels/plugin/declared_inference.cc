#include "kernels/plugin/declared_inference.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "kernels/plugin/declared_attrs.h"

namespace halftone {
namespace kernels {
namespace {

static_assert(kMaxSymbols == HALFTONE_OP_MAX_SYMBOLS, "one in the header");

constexpr int32_t kNoRank = -1;  // that the rule has set nothing

using Powers = std::array<bool, kMaxSymbols>;

HalftoneType TypeFor(const TensorType& type, Powers* seen) {
  HalftoneType made{};
  made.dtype = static_cast<int32_t>(type.dtype);
  made.rank = type.rank();
  for (int d = 0; d < type.rank(); ++d) {
    made.dims[d].coefficient = type.dims[d].coefficient();
    for (int s = 0; s < kMaxSymbols; ++s) {
      const int power = type.dims[d].power(s);
      made.dims[d].power[s] = static_cast<uint8_t>(power);
      (*seen)[s] = (*seen)[s] || power > 0;
    }
  }
  return made;
}

// The values of one call and the dims that it makes.
class Inference {
 public:
  Inference(const HalftoneOp& op, InferContext& context)
      : op_(op), context_(context) {}
  absl::Status Run();

 private:
  absl::Status GatherInputs();
  void GatherOutputs();
  absl::Status TakeOutputs();
  absl::Status TakeDims(const Slot& slot, const HalftoneType& type, int i);

  const HalftoneOp& op_;
  InferContext& context_;
  std::vector<HalftoneType> inputs_, outputs_;
  std::vector<int32_t> input_begin_ = {0}, output_begin_ = {0};
  Powers seen_{};
};

absl::Status Inference::GatherInputs() {
  for (const Slot& slot : context_.schema().inputs()) {
    for (const TensorType& type : context_.InputList(slot.name)) {
      if (type.rank() > HALFTONE_OP_MAX_RANK) {
        return context_.SlotError(
            slot.name, absl::StrCat("at most ", HALFTONE_OP_MAX_RANK, " dims"));
      }
      inputs_.push_back(TypeFor(type, &seen_));
    }
    input_begin_.push_back(static_cast<int32_t>(inputs_.size()));
  }
  return absl::OkStatus();
}

void Inference::GatherOutputs() {
  for (const std::vector<TensorType>& slot : context_.outputs()) {
    for (const TensorType& type : slot) {
      HalftoneType& made = outputs_.emplace_back();
      made = HalftoneType{};
      made.dtype = static_cast<int32_t>(type.dtype);
      made.rank = kNoRank;
    }
    output_begin_.push_back(static_cast<int32_t>(outputs_.size()));
  }
}

absl::Status Inference::TakeDims(const Slot& slot, const HalftoneType& type,
                                 int i) {
  const auto wrong = [&](const auto&... what) {
    return context_.Error("its shape rule gives slot ", slot.name, " ",
                          what...);
  };
  if (type.rank == kNoRank) return wrong("no dims; expected a rank and dims");
  if (type.rank < 0 || type.rank > HALFTONE_OP_MAX_RANK) {
    return wrong(type.rank, " dims; expected 0 to ", HALFTONE_OP_MAX_RANK);
  }
  Dims dims;
  for (int d = 0; d < type.rank; ++d) {
    const HalftoneDim& given = type.dims[d];
    if (given.coefficient < 0) {
      return wrong("the size ", given.coefficient, " in dim ", d,
                   "; expected 0 or more");
    }
    Dim dim(given.coefficient);
    for (int s = 0; s < kMaxSymbols && given.coefficient > 0; ++s) {
      if (given.power[s] > 0 && !seen_[s]) {
        return wrong("a size in dim ", d, " by a symbol that no input has");
      }
      dim.set_power(s, given.power[s]);
    }
    dims.push_back(dim);
  }
  context_.SetOutput(slot.name, std::move(dims), i);
  return absl::OkStatus();
}

absl::Status Inference::TakeOutputs() {
  const absl::Span<const Slot> slots = context_.schema().outputs();
  for (size_t s = 0; s < slots.size(); ++s) {
    for (int32_t at = output_begin_[s]; at < output_begin_[s + 1]; ++at) {
      HT_RETURN_IF_ERROR(
          TakeDims(slots[s], outputs_[at], at - output_begin_[s]));
    }
  }
  return absl::OkStatus();
}

absl::Status Inference::Run() {
  HT_RETURN_IF_ERROR(GatherInputs());
  GatherOutputs();
  const AttrsForLibrary attrs(
      context_.schema(), [this](absl::string_view name) -> const AttrValue& {
        return context_.Attr(name);
      });
  char error[512] = {};
  HalftoneInferCall call{};
  call.inputs = inputs_.data();
  call.input_begin = input_begin_.data();
  call.outputs = outputs_.data();
  call.output_begin = output_begin_.data();
  call.attrs = attrs.all().data();
  call.input_slots = static_cast<int32_t>(input_begin_.size()) - 1;
  call.output_slots = static_cast<int32_t>(output_begin_.size()) - 1;
  call.attr_count = static_cast<int32_t>(attrs.all().size());
  call.error = error;
  call.error_size = sizeof(error);
  if (op_.infer(&call, op_.data) != 0) {
    error[sizeof(error) - 1] = '\0';
    return context_.Error("its shape rule says: ",
                          error[0] == '\0' ? "no" : error);
  }
  return TakeOutputs();
}

}  // namespace

std::function<absl::Status(InferContext&)> InferenceOf(const HalftoneOp& op) {
  return [declared = &op](InferContext& context) {
    return Inference(*declared, context).Run();
  };
}

}  // namespace kernels
}  // namespace halftone

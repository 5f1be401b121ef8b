#include "passes/lower/pad_channels.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// How much longer than the image its padded copy may be.
constexpr int64_t kMostGrowth = 3;

// The channels that `readers` of an image want: see the header. Those that it
// has where it stays as it is.
int64_t WantedChannels(int64_t channels, bool has_gradient,
                       const Target& target) {
  const int64_t half = std::max(target.channel_multiple / 2, 1);
  const int64_t multiple =
      has_gradient || channels > half ? target.channel_multiple : half;
  const int64_t wanted = (channels + multiple - 1) / multiple * multiple;
  return wanted > kMostGrowth * channels ? channels : wanted;
}

class ChannelPadder {
 public:
  ChannelPadder(Block& block, const KernelSet& kernels, HeldValues& held)
      : block_(block), kernels_(kernels), held_(held) {}

  absl::StatusOr<bool> Run() {
    for (OpId id : OpsOfType(block_, "convert_layout")) {
      HT_RETURN_IF_ERROR(PadImage(id));
    }
    return changed_;
  }

 private:
  bool CanPad(const TensorType& image) const {
    return (image.dtype == DType::kF16 || image.dtype == DType::kBF16) &&
           image.layout == Layout::kChannelsLast &&
           image.dims[1].is_constant() &&
           kernels_.Has("pad_channels", {image.dtype}, Layout::kRowMajor) &&
           kernels_.Has("slice", {image.dtype}, Layout::kRowMajor);
  }
  // Pads what the conversion makes, if some reader wants that.
  absl::Status PadImage(OpId conversion);
  absl::StatusOr<ValueId> Pad(ValueId value, int64_t channels,
                              Block::Position position, const Op& reader);
  absl::StatusOr<ValueId> PadFilter(ValueId filter, int64_t channels,
                                    const Op& conv);
  absl::Status CutGradient(OpId id, int64_t channels, int64_t padded);

  Block& block_;
  const KernelSet& kernels_;
  HeldValues& held_;
  bool changed_ = false;
  absl::flat_hash_map<std::pair<ValueId, int64_t>, ValueId> filters_;
};

absl::StatusOr<ValueId> ChannelPadder::Pad(ValueId value, int64_t channels,
                                           Block::Position position,
                                           const Op& reader) {
  OpBuilder builder(&block_, "pad_channels");
  builder.In("X", value)
      .Attr("channels", channels)
      .Out("Out", absl::StrCat(block_.name(value), ".padded"))
      .At(position)
      .Role(reader.role)
      .Why(reader.decision)
      .Origin(reader.name)
      .Unique();
  return BuildValue(block_, builder);
}

absl::StatusOr<ValueId> ChannelPadder::PadFilter(ValueId filter,
                                                 int64_t channels,
                                                 const Op& conv) {
  ValueId& padded = filters_[{filter, channels}];
  if (!padded.valid()) {
    const OpId producer = block_.value(filter).op();
    HT_ASSIGN_OR_RETURN(padded,
                        Pad(filter, channels,
                            producer.valid() ? block_.After(producer)
                                             : Block::Before(block_.first()),
                            conv));
  }
  return padded;
}

absl::Status ChannelPadder::CutGradient(OpId id, int64_t channels,
                                        int64_t padded) {
  const ValueId grad = block_.op(id).out(0);
  const std::string name(block_.name(grad));
  TensorType type = block_.type(grad);
  type.dims[1] = Dim(padded);
  block_.SetType(grad, type);
  block_.RenameValue(grad,
                     block_.UniqueValueName(absl::StrCat(name, ".padded")));
  const Op& op = block_.op(id);
  OpBuilder builder(&block_, "slice");
  builder.In("Input", grad)
      .Name(absl::StrCat(block_.name(op), ".cut"))
      .Attr("axes", std::vector<int64_t>{1})
      .Attr("starts", std::vector<int64_t>{0})
      .Attr("ends", std::vector<int64_t>{channels})
      .Out("Out", name)
      .At(block_.After(id))
      .Role(op.role)
      .Why(op.decision)
      .Origin(op.name)
      .Unique();
  HT_ASSIGN_OR_RETURN(const ValueId cut, BuildValue(block_, builder));
  ReplaceValue(block_, grad, cut, held_);
  block_.SetInput(block_.value(cut).op(), 0, grad);
  return absl::OkStatus();
}

absl::Status ChannelPadder::PadImage(OpId conversion) {
  const ValueId image = block_.op(conversion).out(0);
  const ValueId source = block_.op(conversion).in(0);
  if (!CanPad(block_.type(image))) return absl::OkStatus();
  static const OpSchema* const kConv = Ops().Find("conv2d");
  static const OpSchema* const kGradient = Ops().Find("conv2d_grad_filter");
  std::vector<OpId> convs, gradients;
  for (const Use& use : block_.value(image).uses) {
    const Op& op = block_.op(use.op);
    // Groups split the channels.
    if (use.position != 0 || (op.schema != kConv && op.schema != kGradient) ||
        AttrAs<int64_t>(op, "groups") != 1) {
      continue;
    }
    (op.schema == kConv ? convs : gradients).push_back(use.op);
  }
  const int64_t channels = block_.type(image).dims[1].coefficient();
  const int64_t padded =
      WantedChannels(channels, !gradients.empty(), kernels_.target());
  if (convs.empty() || padded == channels) return absl::OkStatus();
  changed_ = true;
  HT_ASSIGN_OR_RETURN(
      const ValueId wide,
      Pad(source, padded, Block::Before(conversion), block_.op(convs.front())));
  for (OpId id : convs) {
    HT_ASSIGN_OR_RETURN(const ValueId filter,
                        PadFilter(block_.op(id).in(1), padded, block_.op(id)));
    block_.SetInput(id, 0, wide);
    block_.SetInput(id, 1, filter);
  }
  for (OpId id : gradients) {
    block_.SetInput(id, 0, wide);
    HT_RETURN_IF_ERROR(CutGradient(id, channels, padded));
  }
  if (IsDead(block_, block_.op(conversion), held_)) block_.EraseOp(conversion);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> PadChannels::Run(Program& program) {
  if (!kernels_->prefers_channels_last()) return false;
  bool changed = false;
  for (const auto& entry : program.entries()) {
    HeldValues held(*entry);
    HT_ASSIGN_OR_RETURN(const bool padded,
                        ChannelPadder(entry->block(), *kernels_, held).Run());
    changed |= padded;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone

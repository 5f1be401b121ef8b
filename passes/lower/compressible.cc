#include "passes/lower/compressible.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/group_shape.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {
namespace {

// Of a sample, and the rows of dim 0 that it has; nothing if they are not one
// after the other, of a constant size.
struct SampleOf {
  int64_t elements = 0, rows = 1;
};
std::optional<SampleOf> SampleIn(const TensorType& type) {
  if (type.rank() < 1 || type.dims[0].is_constant()) return std::nullopt;
  SampleOf sample;
  sample.rows = type.dims[0].coefficient();
  sample.elements = sample.rows;
  for (int i = 1; i < type.rank(); ++i) {
    if (!type.dims[i].is_constant()) return std::nullopt;
    sample.elements *= type.dims[i].coefficient();
  }
  // The samples' symbol itself, else FirstSample is not what rows begin at.
  Dim samples;
  const bool whole = type.dims[0].DivideBy(Dim(sample.rows), &samples) &&
                     samples == Dim::Symbol(0);
  return whole ? std::make_optional(sample) : std::nullopt;
}

bool IsLossyIn(const Op& op, int input) {
  const Slot& slot = op.schema->inputs()[op.inputs.SlotOf(input)];
  return slot.lossy() || slot.shape_only();
}

// Of a reader in backward.
bool TakesNoise(const Block& block, const Op& op, int input) {
  if (IsPlainView(block, op)) {
    for (const Use& use : block.value(op.outputs.all()[0]).uses) {
      if (!TakesNoise(block, block.op(use.op), use.position)) return false;
    }
    return true;
  }
  if (op.body == nullptr) return IsLossyIn(op, input);
  const Block& body = *op.body;
  const ValueId feed = body.Feeds()[input];
  for (ValueId result : body.body_results()) {
    if (result == feed) return false;
  }
  for (const Use& use : body.value(feed).uses) {
    if (!IsLossyIn(body.op(use.op), use.position)) return false;
  }
  return true;
}

class Finder {
 public:
  Finder(const ForwardPart& forward, const proto::Compress& compress)
      : forward_(forward),
        block_(forward.block()),
        compress_(compress),
        number_of_(block_.op_limit(), -1),
        refused_(block_.op_limit()) {}

  std::vector<Compressible> Run() {
    const auto& ops = forward_.ops();
    for (size_t place = 0; place < ops.size(); ++place) {
      Visit(block_.op(ops[place]), static_cast<int>(place));
    }
    std::vector<Compressible> result;
    for (Compressible& found : found_) {
      if (found.values.empty() || refused_[found.op.index()]) continue;
      int first = found.values[0].first;
      for (const auto& value : found.values) {
        first = std::min(first, value.first);
      }
      if (first > found.last_forward + 1) result.push_back(std::move(found));
    }
    return result;
  }

 private:
  void Visit(const Op& op, int place) {
    for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
      const ValueId in = op.inputs.all()[i];
      const OpId owner = forward_.OwnerOf(in);
      const int number = owner.valid() ? number_of_[owner.index()] : -1;
      if (number < 0 || !ReadsContent(op, i)) continue;
      if (place < forward_.backward()) {
        found_[number].last_forward = place;
      } else if (IsLarge(in) && !Add(op, i, place, &found_[number])) {
        refused_[owner.index()] = true;
      }
    }
    if (place >= forward_.backward() || !forward_.IsRepeatable(op.id) ||
        IsPlainView(block_, op) || !IsNamed(op)) {
      return;
    }
    number_of_[op.id.index()] = static_cast<int>(found_.size());
    found_.emplace_back();
    found_.back().op = op.id;
    found_.back().last_forward = place;
  }
  bool IsNamed(const Op& op) const {
    return compress_.values().empty() ||
           IsNamedBy(compress_.values(), block_, op);
  }
  // Floats that grow with the samples; views that backward makes of them are
  // looked at with what they show.
  bool IsLarge(ValueId value) const {
    return IsFloat(block_.dtype(value)) && forward_.IsReplaceable(value) &&
           forward_.PlaceOf(block_.value(value).op()) < forward_.backward();
  }
  bool Add(const Op& op, int input, int place, Compressible* found) {
    const ValueId id = op.inputs.all()[input];
    const std::optional<SampleOf> sample = SampleIn(block_.type(id));
    if (block_.dtype(id) == DType::kF64 || !sample ||
        sample->elements < compress_.group_size() ||
        !TakesNoise(block_, op, input)) {
      return false;
    }
    for (Compressible::Value& value : found->values) {
      if (value.value != id) continue;
      value.readers.push_back({op.id, input});
      return true;
    }
    found->values.push_back({id, sample->rows, {{op.id, input}}, place});
    return true;
  }

  const ForwardPart& forward_;
  const Block& block_;
  const proto::Compress& compress_;
  std::vector<Compressible> found_;
  std::vector<int> number_of_;  // by op id
  std::vector<bool> refused_;   // by op id
};

}  // namespace

PackedBytes PackedBytesOf(const Block& block, const Compressible::Value& value,
                          const proto::Compress& compress) {
  const TensorType& type = block.type(value.value);
  GroupShape shape;
  shape.elements = type.Elements().coefficient();
  shape.group = compress.group_size();
  shape.bits = static_cast<int>(compress.bits());
  return {shape.elements * SizeOf(type.dtype),
          shape.bytes() + shape.groups() * 2 * SizeOf(DType::kF32)};
}

std::vector<Compressible> FindCompressible(const ForwardPart& forward,
                                           const proto::Compress& compress) {
  return Finder(forward, compress).Run();
}

}  // namespace passes
}  // namespace halftone

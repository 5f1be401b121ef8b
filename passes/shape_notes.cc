#include "passes/shape_notes.h"

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "graph/schema/op_schema.h"
#include "graph/targets/target.h"

namespace halftone {
namespace passes {
namespace {

// A note's text names so many; its `ops` has them all.
constexpr size_t kMostNamed = 4;

bool IsRagged(const Dim& dim) {
  return dim.is_constant() && dim.coefficient() % ChannelMultipleOfAny() != 0;
}

// "1 channel", "10 outputs": what of a low op is not that multiple; empty: all.
std::string RaggedDims(const Block& block, const Op& op) {
  const std::string& type = op.schema->name();
  if (type == "conv2d" || type == "depthwise_conv2d") {
    const Dims& input = block.type(op.in(0)).dims;
    const Dims& filter = block.type(op.in(1)).dims;
    const int64_t in = input[1].coefficient(), out = filter[0].coefficient();
    if (IsRagged(input[1])) {
      return absl::StrCat(in, in == 1 ? " channel" : " channels");
    }
    return IsRagged(filter[0]) ? absl::StrCat(out, " filters") : "";
  }
  if (type != "matmul" && type != "mul") return "";
  const Dims& x = block.type(op.in(0)).dims;
  const Dims& out = block.type(op.out(0)).dims;
  const bool transposed = type == "matmul" && AttrAs<bool>(op, "trans_x");
  const Dim& inner = transposed ? x[x.size() - 2] : x.back();
  if (IsRagged(inner)) return absl::StrCat(inner.coefficient(), " inputs");
  return IsRagged(out.back())
             ? absl::StrCat(out.back().coefficient(), " outputs")
             : "";
}

// Appends "conv1 (3 channels)" to a list.
void Append(ShapeNote* note, const std::string& name, absl::string_view what) {
  note->ops.push_back(name);
  if (note->ops.size() > kMostNamed) return;
  absl::StrAppend(&note->text, note->text.empty() ? "" : ", ", name, " (", what,
                  ")");
}

void Finish(ShapeNote note, absl::string_view rest,
            std::vector<ShapeNote>* notes) {
  if (note.ops.empty()) return;
  if (note.ops.size() > kMostNamed) {
    absl::StrAppend(&note.text, " and ", note.ops.size() - kMostNamed, " more");
  }
  absl::StrAppend(&note.text, rest);
  notes->push_back(std::move(note));
}

}  // namespace

void ShapeNotes::AtInsertion(const Block& block) {
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.role != Role::kForward || !IsLow(op.decision.precision)) continue;
    std::string dims = RaggedDims(block, op);
    if (dims.empty()) continue;
    // Their images come first.
    const TensorType& x = block.type(op.in(0));
    ops_.push_back({op.name, std::string(block.name(op)), std::move(dims),
                    x.rank() > 1 ? x.dims[1] : Dim()});
  }
}

void ShapeNotes::AtEnd(const Block& block) {
  absl::flat_hash_map<NameId, Ragged*> by_name;
  for (Ragged& ragged : ops_) by_name[ragged.op] = &ragged;
  const auto look = [&by_name](const Block& inside, const Op& op) {
    const auto it = by_name.find(op.name);
    if (it == by_name.end() || op.schema->name() != "conv2d") return;
    const TensorType& x = inside.type(op.in(0));
    if (x.dims[1] == it->second->before) return;
    it->second->channels = x.dims[1].coefficient();
    it->second->sample_bytes = x.Elements().coefficient() * SizeOf(x.dtype);
  };
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    look(block, op);
    if (op.body == nullptr) continue;
    for (OpId inner : op.body->ops()) look(*op.body, op.body->op(inner));
  }
}

std::vector<ShapeNote> ShapeNotes::Notes() const {
  ShapeNote idle, padded;
  idle.code = "D8";
  padded.code = "D9";
  for (const Ragged& ragged : ops_) {
    if (ragged.channels == 0) {
      Append(&idle, ragged.name, ragged.dims);
    } else {
      Append(&padded, ragged.name,
             absl::StrCat(ragged.dims, " to ", ragged.channels, ", ",
                          HumanBytes(ragged.sample_bytes), " a sample"));
    }
  }
  std::vector<ShapeNote> notes;
  Finish(std::move(idle),
         absl::StrCat(": not multiples of ", ChannelMultipleOfAny(),
                      ", tensor cores idle there (GPU targets)"),
         &notes);
  Finish(std::move(padded), ": padded with zeros for tensor cores", &notes);
  return notes;
}

}  // namespace passes
}  // namespace halftone

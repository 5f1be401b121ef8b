#include "passes/lower/keep_relu_bits.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/type_key.h"

namespace halftone {
namespace passes {
namespace {

// A fusion before, and what it becomes.
constexpr char kMaker[] = "norm_elementwise";
constexpr char kMakerOfBits[] = "norm_elementwise_bits";
constexpr char kReader[] = "relu_grad_norm";
constexpr char kReaderOfBits[] = "relu_grad_norm_bits";

// A byte is of eight channels.
bool IsOfWholeBytes(const TensorType& type) {
  Dim bytes;
  return type.rank() >= 2 && type.dims[1].DivideBy(Dim(8), &bytes);
}

class BitKeeper {
 public:
  BitKeeper(Block& block, const PatternSet& patterns)
      : block_(block), patterns_(patterns), fusion_(Ops().Find("fusion")) {}

  absl::StatusOr<bool> Run();

 private:
  bool IsOf(OpId op, absl::string_view pattern) const {
    return op.valid() && block_.schema(op) == fusion_ &&
           AttrAs<std::string>(block_.op(op), "pattern") == pattern;
  }
  // By kind, which a fusion has since it was made: of few, most are of others.
  bool IsReader(OpId op) {
    if (block_.schema(op) != fusion_) return false;
    const auto [it, fresh] = readers_.try_emplace(KindOf(block_, op));
    if (fresh) it->second = IsOf(op, kReader);
    return it->second;
  }
  // The body's op of a role; invalid if it has none.
  OpId RoleOf(OpId fusion, absl::string_view role) const;
  // Which argument of `reader` is what its relu made and nothing else; -1:
  // none.
  int ReluArgument(OpId reader, OpId mask) const;
  bool CanKeepBits(OpId maker, ValueId relu) const;
  absl::StatusOr<ValueId> MakeBits(OpId maker);
  void ReadBits(OpId reader, OpId mask, int argument, ValueId bits);
  void SetPattern(OpId fusion, absl::string_view pattern);

  Block& block_;
  const PatternSet& patterns_;
  const OpSchema* const fusion_;
  absl::flat_hash_map<uint64_t, bool> readers_;  // by kind
};

OpId BitKeeper::RoleOf(OpId fusion, absl::string_view role) const {
  const Op& op = block_.op(fusion);
  return FindFusionPattern(AttrAs<std::string>(op, "pattern"))
      ->MatchBody(*op.body)
      .Of(role);
}

int BitKeeper::ReluArgument(OpId reader, OpId mask) const {
  const Block& body = *block_.op(reader).body;
  const ValueId out = InputOf(body.op(mask), "Out");
  const Value& inside = body.value(out);
  if (inside.definition != Definition::kFeed || inside.uses.size() != 1) {
    return -1;
  }
  const std::vector<ValueId> feeds = body.Feeds();
  return static_cast<int>(absl::c_find(feeds, out) - feeds.begin());
}

// Both kernels see the relu's type in their keys: the patterns take nothing
// else.
bool BitKeeper::CanKeepBits(OpId maker, ValueId relu) const {
  const TensorType& type = block_.type(relu);
  return IsOf(maker, kMaker) && RoleOf(maker, "relu").valid() &&
         IsOfWholeBytes(type) && patterns_.Has(kMakerOfBits, type) &&
         patterns_.Has(kReaderOfBits, type);
}

absl::StatusOr<ValueId> BitKeeper::MakeBits(OpId maker) {
  const OpId relu_id = RoleOf(maker, "relu");
  Block& body = *block_.mutable_op(maker).body;
  const Op& relu = body.op(relu_id);
  const std::string name =
      absl::StrCat(body.name(relu.outputs.all()[0]), ".bits");
  OpBuilder builder(&body, "relu_bits");
  builder.Name(name)
      .FirstOut(name)
      .In("Out", relu.outputs.all()[0])
      .Role(relu.role)
      .Why(relu.decision)
      .Origin(relu.name)
      .Line(relu.line)
      .Unique();
  HT_ASSIGN_OR_RETURN(const ValueId inside, BuildValue(body, builder));
  body.body_results().push_back(inside);
  SetPattern(maker, kMakerOfBits);
  const ValueId made = block_.op(maker).outputs.all()[0];
  return block_.AddOutput(
      maker, 0,
      block_.UniqueValueName(absl::StrCat(block_.name(made), ".bits")),
      body.type(inside));
}

void BitKeeper::ReadBits(OpId reader, OpId mask, int argument, ValueId bits) {
  const auto before = block_.op(reader).inputs.all();
  std::vector<ValueId> arguments(before.begin(), before.end());
  arguments.erase(arguments.begin() + argument);
  arguments.push_back(bits);
  Block& body = *block_.mutable_op(reader).body;
  const ValueId out = InputOf(body.op(mask), "Out");
  // relu_grad_bits has relu_grad's slots, with Bits for Out.
  body.SetInput(
      mask, 0,
      body.AddFeed(body.UniqueValueName(block_.name(bits)), block_.type(bits)));
  body.SetSchema(mask, Ops().Find("relu_grad_bits"));
  body.EraseValue(out);
  block_.SetInputSlot(reader, 0, arguments);
  SetPattern(reader, kReaderOfBits);
}

void BitKeeper::SetPattern(OpId fusion, absl::string_view pattern) {
  SetAttrOf(block_, fusion, "pattern", std::string(pattern));
}

absl::StatusOr<bool> BitKeeper::Run() {
  bool changed = false;
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    if (!IsReader(id)) continue;
    const OpId mask = RoleOf(id, "mask");
    const int argument = ReluArgument(id, mask);
    if (argument < 0) continue;
    const ValueId relu = block_.op(id).inputs.all()[argument];
    const OpId maker = block_.value(relu).op();
    if (!CanKeepBits(maker, relu)) continue;
    HT_ASSIGN_OR_RETURN(const ValueId bits, MakeBits(maker));
    ReadBits(id, mask, argument, bits);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> KeepReluBits::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    HT_ASSIGN_OR_RETURN(const bool kept,
                        BitKeeper(entry->block(), patterns_).Run());
    changed |= kept;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone

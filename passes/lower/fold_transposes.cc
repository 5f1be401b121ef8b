#include "passes/lower/fold_transposes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/layout.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// Dim i of a transpose's result is dim axes[i] of what it reads.
using Axes = std::vector<int64_t>;

Axes AxesOf(const Op& transpose) {
  Axes axes = AttrAs<Axes>(transpose, "axis");
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(axes.size());
  }
  return axes;
}

// Whether they swap the last two dims and leave the others in place.
bool SwapMatrix(const Axes& axes) {
  const int64_t rank = static_cast<int64_t>(axes.size());
  if (rank < 2 || axes[rank - 1] != rank - 2 || axes[rank - 2] != rank - 1) {
    return false;
  }
  for (int64_t i = 0; i < rank - 2; ++i) {
    if (axes[i] != i) return false;
  }
  return true;
}

// Whether the elements stay in their order: dims that are not 1 do.
bool KeepOrder(const Axes& axes, const Dims& dims) {
  int64_t last = -1;
  for (int64_t axis : axes) {
    if (dims[axis] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// `to` as what a reshape of `from` states, empty if it can't: one dim at most
// is left to be found.
std::vector<int64_t> ShapeOf(const Dims& from, const Dims& to) {
  std::vector<int64_t> shape;
  bool found = false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_constant() && to[i].coefficient() > 0) {
      shape.push_back(to[i].coefficient());
    } else if (to[i] == from[i]) {
      shape.push_back(0);
    } else if (!found) {
      shape.push_back(-1);
      found = true;
    } else {
      return {};
    }
  }
  return shape;
}

class TransposeFolder {
 public:
  TransposeFolder(Block& block, HeldValues& held)
      : block_(block),
        held_(held),
        transpose_(Ops().Find("transpose")),
        reshape_(Ops().Find("reshape")),
        matmul_(Ops().Find("matmul")) {}

  bool Run() {
    bool changed = false;
    const std::vector<OpId> transposes = block_.OpsOf(transpose_);
    for (const OpId id : transposes) {
      if (!block_.op(id).erased) changed |= Visit(id);
    }
    // Last: a reshape would stand between two transposes.
    for (const OpId id : transposes) {
      if (!block_.op(id).erased) changed |= MakeReshape(id);
    }
    return changed;
  }

 private:
  bool IsTranspose(OpId op) const {
    return op.valid() && block_.op(op).schema == transpose_;
  }
  bool LiesInRows(const Op& op) const {
    return block_.type(op.in(0)).layout == Layout::kRowMajor &&
           block_.type(op.out(0)).layout == Layout::kRowMajor;
  }

  bool Visit(OpId id) {
    if (!LiesInRows(block_.op(id))) return false;
    bool changed = ReadPastTranspose(id);
    if (Drop(id)) return true;
    if (SwapMatrix(AxesOf(block_.op(id)))) {
      changed |= GiveToProducts(id);
      if (block_.op(id).erased || JoinProduct(id)) return true;
    }
    return changed;
  }

  // transpose(transpose(x)) as one of x; left alone where that would be a copy
  // of x that somebody fetches.
  bool ReadPastTranspose(OpId id) {
    const OpId before = block_.value(block_.op(id).in(0)).op();
    if (!IsTranspose(before) || !LiesInRows(block_.op(before))) return false;
    const Axes first = AxesOf(block_.op(before));
    Axes both = AxesOf(block_.op(id));
    for (int64_t& axis : both) axis = first[axis];
    if (held_.Has(block_.op(id).out(0)) &&
        std::is_sorted(both.begin(), both.end())) {
      return false;
    }
    SetAttrOf(block_, id, "axis", std::move(both));
    block_.SetInput(id, 0, block_.op(before).in(0));
    if (!IsDead(block_, block_.op(before), held_)) return true;
    InheritOrigins(block_.op(before), block_.mutable_op(id));
    block_.EraseOp(before);
    return true;
  }

  // One whose result is what it reads.
  bool Drop(OpId id) {
    const Op& turn = block_.op(id);
    const Dims& dims = block_.type(turn.in(0)).dims;
    if (held_.Has(turn.out(0)) || dims != block_.type(turn.out(0)).dims ||
        !KeepOrder(AxesOf(turn), dims)) {
      return false;
    }
    const OpId made_by = block_.value(turn.in(0)).op();
    if (made_by.valid()) InheritOrigins(turn, block_.mutable_op(made_by));
    ReplaceValue(block_, turn.out(0), turn.in(0), held_);
    block_.EraseOp(id);
    return true;
  }

  // Whether the product may read the factor in either direction: X has no flag
  // where its leading dims are rows.
  bool MayTurn(const Op& product, int factor) const {
    return factor == 1 || (factor == 0 && OfEqualRanks(product));
  }
  bool OfEqualRanks(const Op& product) const {
    return block_.type(product.in(0)).rank() ==
           block_.type(product.in(1)).rank();
  }

  // Whether the product takes what its input is the transpose of.
  bool MayRead(const Use& use) const {
    return block_.op(use.op).schema == matmul_ &&
           MayTurn(block_.op(use.op), use.position);
  }

  // One that makes each element of one alone, wherever it lies.
  bool IsMap(OpId id) const {
    if (!id.valid()) return false;
    const Op& op = block_.op(id);
    return op.schema->element_wise() && !op.schema->no_merge() &&
           op.body == nullptr && op.inputs.all().size() == 1 &&
           op.outputs.all().size() == 1 && LiesInRows(op) &&
           block_.type(op.in(0)).dims == block_.type(op.out(0)).dims;
  }

  // From a reader of a transpose on, the maps whose last one only products
  // read that may turn; empty if there is another reader on the way.
  std::vector<OpId> MapsToProducts(OpId reader) const {
    std::vector<OpId> maps;
    while (IsMap(reader)) {
      const ValueId out = block_.op(reader).out(0);
      const auto& uses = block_.value(out).uses;
      if (held_.Has(out) || uses.empty()) return {};
      maps.push_back(reader);
      if (std::all_of(uses.begin(), uses.end(),
                      [this](const Use& use) { return MayRead(use); })) {
        return maps;
      }
      if (uses.size() > 1) return {};
      reader = uses[0].op;
    }
    return {};
  }

  // The maps' results are those of what is not transposed.
  void Turn(const std::vector<OpId>& maps) {
    for (const OpId map : maps) {
      const ValueId in = block_.op(map).in(0), out = block_.op(map).out(0);
      TensorType type = block_.type(out);
      type.dims = block_.type(in).dims;
      block_.SetType(out, type);
      RenameTurned(out);
    }
  }
  void RenameTurned(ValueId value) {
    block_.RenameValue(value, block_.UniqueValueName(absl::StrCat(
                                  block_.name(value), ".transposed")));
  }

  // Those that may read `from` the other way read `to`, and are noted.
  void ReadTurned(ValueId from, ValueId to, std::vector<OpId>* readers) {
    const auto uses = block_.value(from).uses;
    for (const Use& use : uses) {
      if (!MayRead(use)) continue;
      block_.SetInput(use.op, use.position, to);
      const char* flag = kFlags[use.position];
      SetFlag(use.op, flag, !AttrAs<bool>(block_.op(use.op), flag));
      readers->push_back(use.op);
    }
  }

  bool GiveToProducts(OpId id) {
    const ValueId from = block_.op(id).out(0), to = block_.op(id).in(0);
    std::vector<OpId> readers;
    ReadTurned(from, to, &readers);
    const auto others = block_.value(from).uses;
    for (const Use& use : others) {
      const std::vector<OpId> maps = MapsToProducts(use.op);
      if (maps.empty()) continue;
      block_.SetInput(maps[0], 0, to);
      Turn(maps);
      const ValueId last = block_.op(maps.back()).out(0);
      ReadTurned(last, last, &readers);
    }
    if (readers.empty() || !IsDead(block_, block_.op(id), held_)) {
      return !readers.empty();
    }
    for (const OpId reader : readers) {
      InheritOrigins(block_.op(id), block_.mutable_op(reader));
    }
    block_.EraseOp(id);
    return true;
  }

  // transpose(X Y) is transpose(Y) transpose(X), maps of it alike.
  bool JoinProduct(OpId id) {
    const ValueId turned = block_.op(id).out(0);
    std::vector<OpId> maps;  // last one first
    OpId product = OnlyFor(block_, id, block_.op(id).in(0), held_.function());
    while (IsMap(product)) {
      maps.push_back(product);
      product =
          OnlyFor(block_, product, block_.op(product).in(0), held_.function());
    }
    if (!product.valid() || !MayJoin(block_.op(product), block_.op(id).role)) {
      return false;
    }
    Transpose(product);
    std::reverse(maps.begin(), maps.end());
    if (!maps.empty()) RenameTurned(block_.op(product).out(0));
    Turn(maps);
    const OpId last = maps.empty() ? product : maps.back();
    const ValueId out = block_.op(last).out(0);
    const std::string name(block_.name(turned));
    ReplaceValue(block_, turned, out, held_);
    InheritOrigins(block_.op(id), block_.mutable_op(last));
    block_.EraseOp(id);
    block_.RenameValue(out, name);
    return true;
  }
  bool MayJoin(const Op& product, Role role) const {
    return product.schema == matmul_ && !InputOf(product, "Bias").valid() &&
           product.role == role && OfEqualRanks(product);
  }
  void Transpose(OpId product) {
    const Op& op = block_.op(product);
    const ValueId x = op.in(0), y = op.in(1), out = op.out(0);
    const bool trans_x = AttrAs<bool>(op, kFlags[0]);
    const bool trans_y = AttrAs<bool>(op, kFlags[1]);
    block_.SetInput(product, 0, y);
    block_.SetInput(product, 1, x);
    SetFlag(product, kFlags[0], !trans_y);
    SetFlag(product, kFlags[1], !trans_x);
    TensorType type = block_.type(out);
    std::swap(type.dims[type.rank() - 2], type.dims[type.rank() - 1]);
    block_.SetType(out, type);
  }

  bool MakeReshape(OpId id) {
    const Op& turn = block_.op(id);
    const Dims& from = block_.type(turn.in(0)).dims;
    if (!LiesInRows(turn) || !KeepOrder(AxesOf(turn), from)) return false;
    std::vector<int64_t> shape = ShapeOf(from, block_.type(turn.out(0)).dims);
    if (shape.empty()) return false;
    block_.mutable_op(id).attrs = Attrs();
    block_.SetSchema(id, reshape_);
    SetAttrOf(block_, id, "shape", std::move(shape));
    return true;
  }

  // As one writes it: what is false is left out, so that equal products are.
  void SetFlag(OpId id, absl::string_view flag, bool value) {
    if (value) return SetAttrOf(block_, id, flag, true);
    Op& op = block_.mutable_op(id);
    const int index = op.schema->FindAttr(flag);
    AttrList attrs;
    for (const auto& attr : op.attrs) {
      if (attr.first != index) attrs.push_back(attr);
    }
    op.attrs = block_.program().Intern(std::move(attrs));
  }

  // Of a matmul's first two inputs.
  static constexpr const char* kFlags[] = {"trans_x", "trans_y"};

  Block& block_;
  HeldValues& held_;
  const OpSchema *transpose_, *reshape_, *matmul_;
};

}  // namespace

absl::StatusOr<bool> FoldTransposes::Run(Program& program) {
  const OpSchema* transpose = Ops().Find("transpose");
  bool changed = false;
  for (const auto& entry : program.entries()) {
    if (entry->block().CountOf(transpose) == 0) continue;
    HeldValues held(*entry);
    changed |= TransposeFolder(entry->block(), held).Run();
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone

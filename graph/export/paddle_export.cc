#include "graph/export/paddle_export.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/paddle_dtypes.h"
#include "proto/paddle.pb.h"

namespace halftone {
namespace {

using proto::paddle::OpDesc;
using proto::paddle::VarType;

constexpr int64_t kVersion = 2006002;
constexpr char kRole[] = "op_role";
constexpr int kLossRole = 256;

VarType::Type TypeOf(DType dtype) {
  return static_cast<VarType::Type>(PaddleNumberOf(dtype));
}

int RoleOf(Role role) {
  switch (role) {
    case Role::kBackward:
    case Role::kLossScale:
    case Role::kCommunicate:
      return 1;
    case Role::kOptimize:
      return 2;
    case Role::kForward:
      break;
  }
  return 0;
}

bool FitsInt(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

// Sets value and type, numbers in Paddle's widths.
struct SetAttr {
  OpDesc::Attr& attr;
  void operator()(bool value) const {
    attr.set_type(OpDesc::BOOLEAN);
    attr.set_b(value);
  }
  void operator()(int64_t value) const {
    if (FitsInt(value)) {
      attr.set_type(OpDesc::INT);
      attr.set_i(static_cast<int32_t>(value));
    } else {
      attr.set_type(OpDesc::LONG);
      attr.set_l(value);
    }
  }
  void operator()(double value) const {
    attr.set_type(OpDesc::FLOAT);
    attr.set_f(static_cast<float>(value));
  }
  void operator()(const std::string& value) const {
    attr.set_type(OpDesc::STRING);
    attr.set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    bool fit = true;
    for (const int64_t value : values) fit &= FitsInt(value);
    attr.set_type(fit ? OpDesc::INTS : OpDesc::LONGS);
    for (const int64_t value : values) {
      if (fit) {
        attr.add_ints(static_cast<int32_t>(value));
      } else {
        attr.add_longs(value);
      }
    }
  }
  void operator()(const std::vector<double>& values) const {
    attr.set_type(OpDesc::FLOATS);
    for (const double value : values) {
      attr.add_floats(static_cast<float>(value));
    }
  }
  void operator()(const std::vector<std::string>& values) const {
    attr.set_type(OpDesc::STRINGS);
    for (const std::string& value : values) attr.add_strings(value);
  }
  void operator()(DType value) const {
    attr.set_type(OpDesc::INT);
    attr.set_i(TypeOf(value));
  }
};

void AddAttr(const std::string& name, const AttrValue& value, OpDesc* op) {
  OpDesc::Attr* attr = op->add_attrs();
  attr->set_name(name);
  std::visit(SetAttr{*attr}, value);
}

class Exporter {
 public:
  Exporter(const Program& program, const Entry& entry)
      : program_(program), entry_(entry), block_(entry.block()) {
    // Of an op that Paddle has in several versions, ours is the newest.
    for (const auto& [alias, name] : Ops().Aliases()) {
      if (alias == name + "_v2" || alias == name + "2") {
        paddle_type_[name] = alias;
      }
    }
  }

  proto::paddle::ProgramDesc Run() {
    out_.mutable_version()->set_version(kVersion);
    proto::paddle::BlockDesc* block = out_.add_blocks();
    block->set_idx(0);
    block->set_parent_idx(-1);
    AddVars(block);
    AddLowCopies(block);
    for (const OpId id : block_.ops()) AddOp(block_.op(id), block);
    AddCommits(block);
    return std::move(out_);
  }

 private:
  void AddVar(const std::string& name, const TensorType& type,
              const Value& value, proto::paddle::BlockDesc* block) {
    proto::paddle::VarDesc* var = block->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(VarType::LOD_TENSOR);
    VarType::LoDTensorDesc* lod = var->mutable_type()->mutable_lod_tensor();
    lod->set_lod_level(0);
    lod->mutable_tensor()->set_data_type(TypeOf(type.dtype));
    for (const Dim& dim : type.dims) {
      lod->mutable_tensor()->add_dims(dim.is_constant() ? dim.coefficient()
                                                        : -1);
    }
    const bool cell =
        value.definition == Definition::kCell && !IsLowCopy(value.cell());
    var->set_persistable(cell);
    var->set_need_check_feed(value.definition == Definition::kFeed);
    var->set_is_parameter(cell && program_.cell(value.cell()).kind ==
                                      CellKind::kParameter);
    var->set_stop_gradient(cell ? !program_.cell(value.cell()).trainable
                                : value.definition != Definition::kOp &&
                                      value.definition != Definition::kCell);
  }

  bool IsLowCopy(CellId cell) const {
    return program_.cell(cell).kind == CellKind::kDerived;
  }
  void AddCell(const Cell& cell, proto::paddle::BlockDesc* block) {
    Value value;
    value.definition = Definition::kCell;
    value.index = cell.id.index();
    AddVar(cell.name, cell.type, value, block);
  }

  void AddLowCopies(proto::paddle::BlockDesc* block) {
    for (int i = 0; i < program_.num_cells(); ++i) {
      const Cell& cell = program_.cell(CellId(i));
      if (!IsLowCopy(cell.id) || !block_.FindCellValue(cell.id).valid()) {
        continue;
      }
      const Cell& whole = program_.cell(cell.of);
      // Where nothing but its copy is read.
      if (!block_.FindCellValue(whole.id).valid()) AddCell(whole, block);
      OpDesc* cast = block->add_ops();
      cast->set_type("cast");
      AddArgument("X", whole.name, cast->mutable_inputs());
      AddArgument("Out", cell.name, cast->mutable_outputs());
      AddAttr("in_dtype", whole.type.dtype, cast);
      AddAttr("out_dtype", cell.type.dtype, cast);
      AddAttr(kRole, int64_t{RoleOf(Role::kForward)}, cast);
    }
  }

  void AddVars(proto::paddle::BlockDesc* block) {
    for (int i = 0; i < block_.value_limit(); ++i) {
      const Value& value = block_.value(ValueId(i));
      if (value.erased) continue;
      AddVar(std::string(block_.name(value.id)), block_.type(value.id), value,
             block);
    }
  }

  template <typename Slots, typename SlotValues>
  void AddSlots(const Slots& slots, const SlotValues& values,
                google::protobuf::RepeatedPtrField<OpDesc::Var>* to) {
    for (size_t s = 0; s < slots.size(); ++s) {
      OpDesc::Var* var = to->Add();
      var->set_parameter(slots[s].name);
      for (const ValueId value : values.slot(static_cast<int>(s))) {
        var->add_arguments(std::string(block_.name(value)));
      }
    }
  }

  bool MakesLoss(const Op& op) const {
    for (const ValueId value : op.outputs.all()) {
      if (block_.name(value) == program_.loss.var) return true;
    }
    return false;
  }

  void AddOp(const Op& op, proto::paddle::BlockDesc* block) {
    OpDesc* out = block->add_ops();
    const std::string& name = op.schema->name();
    const auto alias = paddle_type_.find(name);
    out->set_type(alias == paddle_type_.end() ? name : alias->second);
    AddSlots(op.schema->inputs(), op.inputs, out->mutable_inputs());
    AddSlots(op.schema->outputs(), op.outputs, out->mutable_outputs());
    for (const auto& [index, value] : op.attrs) {
      AddAttr(op.schema->attrs()[index].name, value, out);
    }
    if (name == "cast") {
      AddAttr("in_dtype", block_.dtype(op.in(0)), out);
      AddAttr("out_dtype", block_.dtype(op.out(0)), out);
    }
    AddAttr(kRole, int64_t{MakesLoss(op) ? kLossRole : RoleOf(op.role)}, out);
  }

  static void AddArgument(const char* slot, const std::string& name,
                          google::protobuf::RepeatedPtrField<OpDesc::Var>* to) {
    OpDesc::Var* var = to->Add();
    var->set_parameter(slot);
    var->add_arguments(name);
  }

  // The cell's variable takes the value.
  void AddCommits(proto::paddle::BlockDesc* block) {
    for (const CommitStatement& commit : entry_.commits()) {
      if (IsLowCopy(commit.cell)) continue;
      const Cell& cell = program_.cell(commit.cell);
      OpDesc* out = block->add_ops();
      out->set_type("assign");
      AddArgument("X", std::string(block_.name(commit.value)),
                  out->mutable_inputs());
      AddArgument("Out", cell.name, out->mutable_outputs());
      AddAttr(kRole, int64_t{RoleOf(Role::kOptimize)}, out);
      // One that nothing reads.
      if (!block_.FindCellValue(commit.cell).valid()) AddCell(cell, block);
    }
  }

  const Program& program_;
  const Entry& entry_;
  const Block& block_;
  absl::flat_hash_map<std::string, std::string> paddle_type_;
  proto::paddle::ProgramDesc out_;
};

}  // namespace

proto::paddle::ProgramDesc ToPaddleProgram(const Program& program,
                                           const Entry& entry) {
  return Exporter(program, entry).Run();
}

}  // namespace halftone

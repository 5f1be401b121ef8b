// Ops of Paddle's that move elements or multiply matrices in forms that ours do
// not have: several of ours each.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;
using paddle::OpDesc;
using paddle::VarType;

using Operand = PaddleOperand;

// Whether the last two dims are known.
bool IsMatrix(const Operand& x, ImportedOp* result) {
  if (x.rank() >= 2 && x.dims[x.rank() - 1] > 0 && x.dims[x.rank() - 2] > 0) {
    return true;
  }
  RefuseDimsOf(x, "expected a matrix of known dims", result);
  return false;
}

// ---- Products.

std::string Transposed(Parts& parts, const std::string& x, int rank) {
  IntList order = AxesOf(rank);
  std::swap(order[rank - 1], order[rank - 2]);
  return parts.Add("transpose2", {{"X", x}}, {{"axis", order}});
}

// The leading dims of a product by numpy's rule.
IntList Leading(const IntList& a, const IntList& b) {
  IntList dims(std::max(a.size(), b.size()) - 2, 1);
  for (const IntList* const one : {&a, &b}) {
    const size_t missing = dims.size() + 2 - one->size();
    for (size_t i = missing; i < dims.size(); ++i) {
      if (dims[i] == 1) dims[i] = (*one)[i - missing];
    }
  }
  return dims;
}

// `value`, of the operand's dims, with these leading ones; empty: that cannot
// be said without the batch.
std::string WithLeading(Parts& parts, const std::string& value,
                        const Operand& x, const IntList& leading) {
  const size_t missing = leading.size() + 2 - x.dims.size();
  IntList shape;
  for (size_t i = 0; i < leading.size(); ++i) {
    const int64_t own = i < missing ? 1 : x.dims[i - missing];
    if (own != leading[i] && leading[i] < 0) return "";
    shape.push_back(own == leading[i] && i >= missing ? -1 : leading[i]);
  }
  const bool same = missing == 0 &&
                    std::count(shape.begin(), shape.end(), -1) == x.rank() - 2;
  if (same) return value;
  shape.insert(shape.end(), 2, -1);
  return parts.Add("expand_v2", {{"X", value}}, {{"shape", shape}});
}

struct Matrices {
  Operand x, y;
  bool trans_x = false, trans_y = false;
};

// The product of what is no vector.
void Multiply(Parts& parts, const Matrices& m, std::string x, std::string y,
              ImportedOp* result) {
  bool trans_x = m.trans_x;
  if (m.x.rank() == 2 && m.y.rank() > 2) {
    // X Y = (Y' X')': a matrix that is shared stands on the right.
    if (!m.trans_y) y = Transposed(parts, y, m.y.rank());
    const std::string product =
        parts.Add("matmul", {{"X", y}, {"Y", x}}, {{"trans_y", !trans_x}});
    Transposed(parts, product, m.y.rank());
    return;
  }
  if (m.y.rank() == 2 && m.x.rank() > 2 && trans_x) {
    x = Transposed(parts, x, m.x.rank());
    trans_x = false;
  }
  if (m.y.rank() > 2) {
    const IntList leading = Leading(m.x.dims, m.y.dims);
    x = WithLeading(parts, x, m.x, leading);
    y = WithLeading(parts, y, m.y, leading);
    if (x.empty() || y.empty()) {
      RefuseDimsOf(x.empty() ? m.x : m.y,
                   "a factor that is repeated as the batch is", result);
      return;
    }
  }
  parts.Add("matmul", {{"X", x}, {"Y", y}},
            {{"trans_x", trans_x}, {"trans_y", m.trans_y}});
}

}  // namespace

// Vectors are matrices of one row or column.
void Product(const OpDesc& op, const Rule& rule, PaddleScope& scope,
             ImportedOp* result) {
  ImportedOp unknown;
  if (!PaddleReader(op, {"X", "Y"}, scope, &unknown).ok()) {
    return ByName(op, rule, scope, result);  // dims are found out later
  }
  PaddleReader in(op, {"X", "Y"}, scope, result);
  Matrices m = {in[0], in[1]};
  m.trans_x = BoolAttr(op, "trans_x", BoolAttr(op, "transpose_X", false));
  m.trans_y = BoolAttr(op, "trans_y", BoolAttr(op, "transpose_Y", false));
  const auto leads = [](const Operand& x) {
    return IntList(x.dims.begin(), x.dims.end() - 2);
  };
  const bool ours = m.x.rank() >= 2 && m.y.rank() >= 2 &&
                    (m.y.rank() == 2 ? m.x.rank() == 2 || !m.trans_x
                                     : leads(m.x) == leads(m.y));
  if (ours || m.x.rank() == 0 || m.y.rank() == 0 ||
      FloatAttr(op, "alpha", 1) != 1) {
    ByName(op, rule, scope, result);
    return;
  }
  std::string x = m.x.value, y = m.y.value;
  Parts parts = in.Write();
  IntList gone;
  if (m.y.rank() == 1) {
    y = parts.Add("unsqueeze2", {{"X", y}}, {{"axes", IntList{1}}});
    m.y.dims.push_back(1);
    m.trans_y = false;
    gone.push_back(-1);
  }
  if (m.x.rank() == 1) {
    x = parts.Add("unsqueeze2", {{"X", x}}, {{"axes", IntList{0}}});
    m.x.dims.insert(m.x.dims.begin(), 1);
    m.trans_x = false;
    gone.push_back(-2);
  }
  Multiply(parts, m, x, y, result);
  if (!result->refusals.empty()) return;
  if (!gone.empty()) {
    const std::string product = result->nodes.back().out(0).var(0);
    parts.Add("squeeze2", {{"X", product}}, {{"axes", gone}});
  }
  parts.End();
}

// A batch of products.
void BatchProduct(const OpDesc& op, const Rule& rule, PaddleScope& scope,
                  ImportedOp* result) {
  OpDesc product = op;
  product.set_type("matmul_v2");
  Product(product, rule, scope, result);
}

// The maximum plus the logarithm of the sum of exp(X - maximum).
void LogSumExp(const OpDesc& op, const Rule&, PaddleScope& scope,
               ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const Operand& x = in[0];
  IntList axes = IntsAttr(op, "axis");
  if (axes.empty() || BoolAttr(op, "reduce_all", false)) {
    axes = AxesOf(x.rank());
  }
  const std::string value = x.value;
  Parts parts = in.Write();
  const auto reduced = [&](const char* type, const std::string& of) {
    return parts.Add(type, {{"X", of}}, {{"dim", axes}, {"keep_dim", true}});
  };
  const std::string most = reduced("reduce_max", value);
  const std::string exp = parts.Add(
      "exp",
      {{"X", parts.Add("elementwise_sub", {{"X", value}, {"Y", most}})}});
  const std::string log = parts.Add("log", {{"X", reduced("reduce_sum", exp)}});
  const std::string sum =
      parts.Add("elementwise_add", {{"X", log}, {"Y", most}});
  const bool keeps = BoolAttr(op, "keepdim", false);
  if (!keeps) parts.Add("squeeze2", {{"X", sum}}, {{"axes", axes}});
  parts.End();
}

// Channels of [groups, n] as [n, groups].
void ChannelShuffle(const OpDesc& op, const Rule&, PaddleScope& scope,
                    ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const Operand& x = in[0];
  const int64_t groups = IntAttr(op, "groups", 1);
  if (x.rank() != 4 || groups < 1 || x.dims[1] % groups != 0 ||
      *std::min_element(x.dims.begin() + 1, x.dims.end()) < 1) {
    RefuseDimsOf(x, "expected [N, C, H, W], C in whole groups", result);
    return;
  }
  const std::string value = x.value;
  Parts parts = in.Write();
  const IntList split = {x.dims[0], groups, x.dims[1] / groups, x.dims[2],
                         x.dims[3]};
  const std::string grouped =
      parts.Add("reshape2", {{"X", value}}, {{"shape", split}});
  const std::string moved = parts.Add("transpose2", {{"X", grouped}},
                                      {{"axis", IntList{0, 2, 1, 3, 4}}});
  parts.Add("reshape2", {{"X", moved}}, {{"shape", x.dims}});
  parts.End();
}

// softmax(X + Mask), or over what does not lie above the diagonal. (Paddle's
// kernels are for GPUs alone; -10,000 is theirs.)
void MaskedSoftmax(const OpDesc& op, const Rule&, PaddleScope& scope,
                   ImportedOp* result) {
  const bool triangle = op.type() == "fused_softmax_mask_upper_triangle";
  PaddleReader in = triangle ? PaddleReader(op, {"X"}, scope, result)
                             : PaddleReader(op, {"X", "Mask"}, scope, result);
  if (!in.ok()) return;
  const Operand& x = in[0];
  if (triangle && !IsMatrix(x, result)) return;
  Parts parts = in.Write();
  std::string masked;
  if (triangle) {
    const std::string keep = parts.ByDiagonal(
        "less_equal", x.dims[x.rank() - 2], x.dims[x.rank() - 1], 0);
    const std::string low =
        parts.Add("fill_constant", {}, {{"value", -1e4}, {"dtype", x.dtype}});
    masked =
        parts.Add("where", {{"Condition", keep}, {"X", x.value}, {"Y", low}});
  } else {
    masked = parts.Binary("elementwise_add", {x.value, in[1].value});
  }
  parts.Add("softmax", {{"X", masked}});
  parts.End();
}

// What of a matrix lies on one side of a diagonal; zeros beside it.
void TrilTriu(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok() || !IsMatrix(in[0], result)) return;
  const Operand& x = in[0];
  const bool lower = BoolAttr(op, "lower", true);
  const int64_t diagonal = SizeAttr(op, "diagonal", 0);
  const std::string value = x.value;
  Parts parts = in.Write();
  // The upper part is what does not lie below the diagonal before.
  const std::string below =
      parts.ByDiagonal("less_equal", x.dims[x.rank() - 2], x.dims[x.rank() - 1],
                       lower ? diagonal : diagonal - 1);
  const std::string zero = parts.Add("fill_constant", {}, {{"dtype", x.dtype}});
  parts.Add("where", {{"Condition", below},
                      {"X", lower ? value : zero},
                      {"Y", lower ? zero : value}});
  parts.End();
}

// The last elements come first, along each axis.
void Roll(const OpDesc& op, const Rule&, PaddleScope& scope,
          ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const Operand& x = in[0];
  IntList shifts = IntsAttr(op, "shifts"), axes = IntsAttr(op, "axis");
  if (shifts.empty() || shifts.size() != axes.size() ||
      !InputsOf(op, "ShiftsTensor").empty()) {
    result->refusals.push_back(
        {"expected numbers as shifts, an axis for each"});
    return;
  }
  std::string value = x.value;
  Parts parts = in.Write();
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + x.rank() : axes[i];
    const int64_t dim = axis >= 0 && axis < x.rank() ? x.dims[axis] : -1;
    if (dim < 1) {
      RefuseDimsOf(x, "expected axes of known dims", result);
      return;
    }
    const int64_t first = (dim - shifts[i] % dim) % dim;
    if (first == 0) continue;
    const std::string head = parts.Slice(value, axis, first, dim);
    const std::string tail = parts.Slice(value, axis, 0, first);
    value = parts.Add("concat", {{"X", head}, {"X", tail}}, {{"axis", axis}});
  }
  parts.EndWith(value);
}

// Each vector along an axis of its own, repeated along the others'.
void MeshGrid(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  const auto& inputs = InputsOf(op, "X");
  const auto& outputs = OutputsOf(op, "Out");
  const int rank = inputs.size();
  IntList dims;
  for (const std::string& name : inputs) {
    const VarType::TensorDesc* const tensor = TensorOf(name, scope);
    const bool known =
        tensor != nullptr && tensor->dims_size() == 1 && tensor->dims(0) > 0;
    if (known) dims.push_back(tensor->dims(0));
  }
  if (outputs.size() != rank || static_cast<int>(dims.size()) != rank) {
    result->refusals.push_back({"expected vectors of known dims"});
    return;
  }
  for (int i = 0; i < rank; ++i) {
    const std::string value = scope.Read(inputs[i]);
    Parts parts(scope.Write(outputs[i]), scope, result);
    const std::string one =
        parts.Add("unsqueeze2", {{"X", value}}, {{"axes", AxesOf(rank, {i})}});
    parts.Add("expand_v2", {{"X", one}}, {{"shape", dims}});
    parts.End();
  }
}

// Where the batch is not to be repeated, Y's dims are numbers.
void ExpandAs(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result);
  if (!in.ok()) return;
  const Operand& x = in[0];
  IntList shape = IntsAttr(op, "target_shape");
  if (shape.empty()) {
    const PaddleReader like(op, {"Y"}, scope, result);
    if (!like.ok()) return;
    shape = like[0].dims;
  }
  const int missing = static_cast<int>(shape.size()) - x.rank();
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t own = static_cast<int>(i) < missing ? 1 : x.dims[i - missing];
    if (missing < 0 || (shape[i] < 0 && own >= 0)) {
      RefuseDimsOf(x, "a value that is repeated as the batch is", result);
      return;
    }
  }
  Parts parts = in.Write();
  parts.Add("expand_v2", {{"X", x.value}}, {{"shape", shape}});
  parts.End();
}

}  // namespace halftone

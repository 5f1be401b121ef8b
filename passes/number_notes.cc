#include "passes/number_notes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "graph/base/text.h"
#include "graph/schema/op_schema.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// ---- N1.

struct WrittenNumber {
  absl::string_view type, attr;
};
// Attributes that go into the result as they are, or as factor and summand.
constexpr WrittenNumber kWrittenNumbers[] = {{"fill_constant", "value"},
                                             {"pad", "pad_value"},
                                             {"pad3d", "value"},
                                             {"scale", "bias"},
                                             {"scale", "scale"}};

// "1e+09: inf": what f16 makes of a finite number that it does not hold, else
// empty.
std::string Misfit(double number) {
  const float stored = static_cast<float>(half(static_cast<float>(number)));
  if (!std::isfinite(number) || number == 0) return "";
  if (std::isfinite(stored) && stored != 0) return "";
  return absl::StrCat(absl::StrFormat("%g", number), ": ",
                      stored == 0  ? "0"
                      : number > 0 ? "inf"
                                   : "-inf");
}

void AddMisfits(const Block& block, const Op& op, NumberNote* note) {
  for (const WrittenNumber& written : kWrittenNumbers) {
    if (op.schema->name() != written.type) continue;
    const std::string misfit = Misfit(AttrAs<double>(op, written.attr));
    if (misfit.empty()) continue;
    note->ops.emplace_back(block.name(op));
    note->labels.push_back(
        absl::StrCat(note->ops.back(), ".", written.attr, " (", misfit, ")"));
  }
}

bool WritesF16(const Block& block, const Op& op) {
  return !op.outputs.all().empty() && block.dtype(op.out(0)) == DType::kF16;
}

NumberNote ConstantsOutsideF16(const Block& block) {
  NumberNote note = {"N1", {}, {}, ": numbers that f16 does not hold"};
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.role != Role::kForward || !WritesF16(block, op)) continue;
    if (op.schema->name() != "cast") {
      AddMisfits(block, op, &note);
      continue;
    }
    const Op* fill = DefinedBy(block, op.in(0), "fill_constant");
    if (fill != nullptr) AddMisfits(block, *fill, &note);
  }
  return note;
}

// ---- N2.

NumberNote LongSums(const Block& block) {
  NumberNote note = {"N2",
                     {},
                     {},
                     ": sums in f16 are infinite above 65,504; "
                     "--black reduce_sum keeps them in f32"};
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    const std::string& type = op.schema->name();
    if (op.role != Role::kForward || !WritesF16(block, op)) continue;
    if (type != "reduce_sum" && type != "cumsum") continue;
    int64_t count = block.type(op.in(0)).Elements().coefficient();
    if (type == "reduce_sum") {
      count /=
          std::max<int64_t>(block.type(op.out(0)).Elements().coefficient(), 1);
    }
    if (count < kLongSum) continue;
    note.ops.emplace_back(block.name(op));
    note.labels.push_back(
        absl::StrCat(note.ops.back(), " (", WithCommas(count), " summands)"));
  }
  return note;
}

// ---- N3.

struct LossyPair {
  absl::string_view type, slot;  // of what reads
  absl::string_view of;          // what makes the value
  absl::string_view instead;
};
constexpr LossyPair kLossyPairs[] = {
    {"bce_loss", "X", "sigmoid", "sigmoid_cross_entropy_with_logits"},
    {"log_loss", "Predicted", "sigmoid", "sigmoid_cross_entropy_with_logits"},
    {"log", "X", "sigmoid", "-softplus(-x)"},
    {"log", "X", "softmax", "log_softmax"},
    {"cross_entropy", "X", "softmax", "softmax_with_cross_entropy"},
    {"cross_entropy2", "X", "softmax", "softmax_with_cross_entropy"},
    {"softmax", "X", "softmax", "one softmax"},
    {"softmax_with_cross_entropy", "Logits", "softmax",
     "its input, or use_softmax: false"},
};

// What made the value, casts left out; null: no op.
const Op* MadeBy(const Block& block, ValueId value) {
  for (OpId id = block.value(value).op(); id.valid();
       id = block.value(value).op()) {
    const Op& op = block.op(id);
    if (op.schema->name() != "cast") return &op;
    value = op.in(0);
  }
  return nullptr;
}

NumberNote LossyPairs(const Block& block) {
  NumberNote note = {
      "N3", {}, {}, ": rounding between the two loses what one op keeps"};
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.role != Role::kForward) continue;
    for (const LossyPair& pair : kLossyPairs) {
      if (op.schema->name() != pair.type) continue;
      const ValueId read = InputOf(op, pair.slot);
      const Op* made = read.valid() ? MadeBy(block, read) : nullptr;
      if (made == nullptr || made->schema->name() != pair.of) continue;
      const int softmax = op.schema->FindAttr("use_softmax");
      if (softmax >= 0 && !AttrAs<bool>(op, "use_softmax")) continue;
      note.ops.emplace_back(block.name(op));
      note.labels.push_back(absl::StrCat(note.ops.back(), " (", pair.type,
                                         " of ", block.name(*made),
                                         "; instead: ", pair.instead, ")"));
    }
  }
  return note;
}

// ---- C1.

bool IsProduct(const Op& op) {
  const Work work = op.schema->work();
  return work == Work::kProduct || work == Work::kDataGrad ||
         work == Work::kWeightGrad;
}

// Of one sample where samples are what grows.
int64_t Bytes(const Block& block, ValueId value) {
  const TensorType& type = block.type(value);
  return type.Elements().coefficient() * SizeOf(type.dtype);
}

// Sets of ops, joined where they read or write the same low value.
class UnionFind {
 public:
  explicit UnionFind(int size) : parent_(size) {
    for (int i = 0; i < size; ++i) parent_[i] = i;
  }
  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The smaller number stays: an island is called by its first op.
  void Join(int a, int b) {
    a = Find(a), b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

bool IsLowOp(const Op& op) {
  return (op.role == Role::kForward || op.role == Role::kBackward) &&
         op.schema->name() != "cast" && IsLow(op.decision.precision);
}

}  // namespace

std::vector<NumberNote> NumberNotes(const Block& block) {
  return {ConstantsOutsideF16(block), LongSums(block), LossyPairs(block)};
}

void IslandNotes::AtInsertion(const Block& block) {
  UnionFind islands(block.op_limit());
  const auto for_low_values = [&](const Op& op, auto visit) {
    for (ValueId value : op.inputs.all()) {
      if (value.valid() && IsLow(block.dtype(value))) visit(value);
    }
    for (ValueId value : op.outputs.all()) {
      if (value.valid() && IsLow(block.dtype(value))) visit(value);
    }
  };
  absl::flat_hash_map<ValueId, int> seen;  // low value: an op that touches it
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (!IsLowOp(op)) continue;
    for_low_values(op, [&](ValueId value) {
      const auto [it, fresh] = seen.try_emplace(value, id.index());
      if (!fresh) islands.Join(it->second, id.index());
    });
  }
  absl::flat_hash_map<int, int> number;  // of an island, by its first op
  std::vector<bool> has_product;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (!IsLowOp(op)) continue;
    const auto [it, fresh] =
        number.try_emplace(islands.Find(id.index()), islands_.size());
    if (fresh) {
      islands_.emplace_back();
      has_product.push_back(false);
    }
    Island& island = islands_[it->second];
    if (IsProduct(op)) has_product[it->second] = true;
    if (op.role == Role::kForward) island.ops.emplace_back(block.name(op));
    // In f32 each would be twice as large.
    for_low_values(op,
                   [&](ValueId value) { island.saved += Bytes(block, value); });
  }
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.schema->name() != "cast") continue;
    for (ValueId value : {op.in(0), op.out(0)}) {
      const auto it = seen.find(value);
      if (it == seen.end()) continue;
      islands_[number.at(islands.Find(it->second))].casts.push_back(op.name);
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < islands_.size(); ++i) {
    if (has_product[i] || islands_[i].ops.empty()) continue;
    if (kept != i) islands_[kept] = std::move(islands_[i]);
    ++kept;
  }
  islands_.resize(kept);
}

NumberNote IslandNotes::AtEnd(const Block& block) const {
  NumberNote note;
  note.code = "C1";
  int64_t cost = 0, saved = 0;
  for (const Island& island : islands_) {
    int64_t moved = 0;
    for (NameId name : island.casts) {
      const OpId id = block.FindOp(name);
      if (!IsOp(block, id, "cast")) continue;
      const Op& cast = block.op(id);
      moved += Bytes(block, cast.in(0)) + Bytes(block, cast.out(0));
    }
    if (moved <= island.saved) continue;
    cost += moved;
    saved += island.saved;
    absl::c_copy(island.ops, std::back_inserter(note.ops));
  }
  note.labels = note.ops;
  note.rest = absl::StrCat(
      ": casts around them move ", HumanBytes(cost), " per sample to save ",
      HumanBytes(saved),
      note.ops.size() == 1 ? absl::StrCat("; --black-op ", note.ops[0])
                           : "; amp.custom_black_opnames keeps them in f32");
  return note;
}

}  // namespace passes
}  // namespace halftone

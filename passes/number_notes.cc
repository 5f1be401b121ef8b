#include "passes/number_notes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "graph/base/shell_word.h"
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

bool WritesF16(const Block& block, const Op& op) {
  return op.role == Role::kForward && block.dtype(op.out(0)) == DType::kF16;
}

// Whether it is f16 where it is read, behind a cast.
bool IsCastToF16(const Block& block, ValueId value) {
  return absl::c_any_of(block.value(value).uses, [&block](const Use& use) {
    return IsOp(block, use.op, "cast") && WritesF16(block, block.op(use.op));
  });
}

NumberNote ConstantsOutsideF16(const Block& block) {
  NumberNote note = {"N1", {}, {}, ": numbers that f16 does not hold"};
  for (const WrittenNumber& written : kWrittenNumbers) {
    for (OpId id : OpsOfType(block, written.type)) {
      const Op& op = block.op(id);
      if (!WritesF16(block, op) && !(op.schema->name() == "fill_constant" &&
                                     IsCastToF16(block, op.out(0)))) {
        continue;
      }
      const std::string misfit = Misfit(AttrAs<double>(op, written.attr));
      if (misfit.empty()) continue;
      note.ops.emplace_back(block.name(op));
      note.labels.push_back(
          absl::StrCat(note.ops.back(), ".", written.attr, " (", misfit, ")"));
    }
  }
  return note;
}

// ---- N2.

NumberNote LongSums(const Block& block) {
  NumberNote note = {"N2", {}, {}, ": sums in f16 are infinite above 65,504; "};
  std::string flags;
  bool asked_for = false;
  for (const char* type : {"reduce_sum", "cumsum"}) {
    for (OpId id : OpsOfType(block, type)) {
      const Op& op = block.op(id);
      if (!WritesF16(block, op)) continue;
      int64_t count = block.type(op.in(0)).Elements().coefficient();
      if (op.schema->name() == "reduce_sum") {
        count /= std::max<int64_t>(
            block.type(op.out(0)).Elements().coefficient(), 1);
      }
      if (count < kLongSum) continue;
      note.ops.emplace_back(block.name(op));
      note.labels.push_back(
          absl::StrCat(note.ops.back(), " (", WithCommas(count), " summands)"));
      asked_for |= op.decision.reason == Reason::kUserWhite;
      if (!absl::EndsWith(flags, type)) {
        absl::StrAppend(&flags, flags.empty() ? "" : " ", "--black ", type);
      }
    }
  }
  note.rest += asked_for ? "without your white list they stay in f32"
                         : absl::StrCat(flags, " keeps them in f32");
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
  for (const LossyPair& pair : kLossyPairs) {
    for (OpId id : OpsOfType(block, pair.type)) {
      const Op& op = block.op(id);
      if (op.role != Role::kForward) continue;
      const ValueId read = InputOf(op, pair.slot);
      const Op* made = read.valid() ? MadeBy(block, read) : nullptr;
      if (made == nullptr || made->schema->name() != pair.of) continue;
      if (op.schema->FindAttr("use_softmax") >= 0 &&
          !AttrAs<bool>(op, "use_softmax")) {
        continue;
      }
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
  const auto for_low_values = [&block](const Op& op, auto visit) {
    for (const auto values : {op.inputs.all(), op.outputs.all()}) {
      for (ValueId value : values) {
        if (value.valid() && IsLow(block.dtype(value))) visit(value);
      }
    }
  };
  UnionFind islands(block.op_limit());
  std::vector<int> touched_by(block.value_limit(), -1);  // an op, by low value
  std::vector<OpId> low;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (!IsLowOp(op)) continue;
    low.push_back(id);
    for_low_values(op, [&](ValueId value) {
      int& other = touched_by[value.index()];
      if (other >= 0) islands.Join(other, id.index());
      other = id.index();
    });
  }
  std::vector<bool> has_product(block.op_limit());
  for (OpId id : low) {
    if (IsProduct(block.op(id))) has_product[islands.Find(id.index())] = true;
  }
  std::vector<int> number(block.op_limit(), -1);  // of an island, by first op
  for (OpId id : low) {
    const int first = islands.Find(id.index());
    if (has_product[first]) continue;
    if (number[first] < 0) {
      number[first] = static_cast<int>(islands_.size());
      islands_.emplace_back();
    }
    const Op& op = block.op(id);
    Island& island = islands_[number[first]];
    if (op.role == Role::kForward) island.ops.emplace_back(block.name(op));
    // In f32 each would be twice as large.
    for_low_values(op,
                   [&](ValueId value) { island.saved += Bytes(block, value); });
  }
  if (islands_.empty()) return;
  for (OpId id : OpsOfType(block, "cast")) {
    const Op& cast = block.op(id);
    for (ValueId value : {cast.in(0), cast.out(0)}) {
      const int op = touched_by[value.index()];
      const int island = op < 0 ? -1 : number[islands.Find(op)];
      if (island >= 0) islands_[island].casts.push_back(cast.name);
    }
  }
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
    if (moved <= island.saved || island.ops.empty()) continue;
    cost += moved;
    saved += island.saved;
    absl::c_copy(island.ops, std::back_inserter(note.ops));
  }
  note.labels = note.ops;
  note.rest =
      absl::StrCat(": casts around them move ", HumanBytes(cost),
                   " per sample to save ", HumanBytes(saved),
                   note.ops.size() == 1
                       ? absl::StrCat("; --black-op ", ShellWord(note.ops[0]))
                       : "; amp.custom_black_opnames keeps them in f32");
  return note;
}

}  // namespace passes
}  // namespace halftone

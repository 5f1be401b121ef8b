#include "passes/precision/place_by_cost.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "passes/precision/min_cut.h"
#include "passes/precision/slots.h"
#include "passes/rewrite/reached.h"

namespace halftone {
namespace passes {
namespace {

// More bytes count as these: millions of them add up to less than kNever.
constexpr int64_t kMostBytes = int64_t{1} << 38;

// Who makes or reads a value, and in what precision.
struct Side {
  OpId op;                        // valid: in the op's
  DType fixed = DType::kInvalid;  // else in this one
};

using Readers = absl::InlinedVector<Side, 4>;

// A value that may be cast.
struct Site {
  Side producer;
  Readers readers;
  Readers differentiable;  // of these the ones that send a gradient back
  int64_t bytes = 0;       // that a cast reads and writes
};

class Sites {
 public:
  explicit Sites(const Program& program)
      : block_(program.FindEntry(kTrainEntry)->block()),
        reached_(ReachedByParameters(block_)),
        reach_loss_(block_.op_limit()) {
    ones_.fill(1);
    FindWhatReachesLoss(block_.FindValue(program.loss.var));
  }

  void ForEach(absl::FunctionRef<void(const Site&)> visit) {
    for (int i = 0; i < block_.value_limit(); ++i) {
      const Value& value = block_.value(ValueId(i));
      if (value.erased || !IsAmpFloat(block_.dtype(value.id))) continue;
      Site site;
      if (!FindProducer(value, &site.producer)) continue;
      FindReaders(value, &site);
      if (site.readers.empty()) continue;
      site.bytes = BytesOf(value.id);
      if (site.bytes > 0) visit(site);
    }
  }

 private:
  void FindWhatReachesLoss(ValueId loss) {
    for (OpId id = block_.last(); id.valid(); id = block_.previous(id)) {
      const Op& op = block_.op(id);
      if (op.role != Role::kForward || !op.schema->has_grad()) continue;
      for (ValueId output : op.outputs.all()) {
        const auto& uses = block_.value(output).uses;
        if (output == loss ||
            std::any_of(uses.begin(), uses.end(), [this](const Use& use) {
              return reach_loss_[use.op.index()];
            })) {
          reach_loss_[id.index()] = true;
          break;
        }
      }
    }
  }

  // False for what is stored: its casts are cells.
  bool FindProducer(const Value& value, Side* producer) {
    switch (value.definition) {
      case Definition::kConstant:
      case Definition::kCell:
        return false;
      case Definition::kFeed:
        producer->fixed = block_.dtype(value.id);
        return true;
      case Definition::kOp:
        break;
    }
    const Op& op = block_.op(value.op());
    if (op.role != Role::kForward) return false;
    const SlotKind kind =
        slots_.Of(*op.schema).outputs[op.outputs.SlotOf(value.result)];
    if (slots_.HasOwnDTypes(block_, op) || kind != SlotKind::kEither) {
      producer->fixed = block_.dtype(value.id);
    } else {
      producer->op = op.id;
    }
    return true;
  }

  void FindReaders(const Value& value, Site* site) {
    for (const Use& use : value.uses) {
      const Op& op = block_.op(use.op);
      if (op.role != Role::kForward) continue;
      if (slots_.HasOwnDTypes(block_, op)) continue;
      const SlotKind kind =
          slots_.Of(*op.schema).inputs[op.inputs.SlotOf(use.position)];
      if (kind == SlotKind::kFixed) continue;
      Side reader;
      if (kind == SlotKind::kEither) {
        reader.op = op.id;
      } else {
        reader.fixed = DType::kF32;
      }
      site->readers.push_back(reader);
      if (reached_[value.id.index()] && reach_loss_[op.id.index()]) {
        site->differentiable.push_back(reader);
      }
    }
  }

  int64_t BytesOf(ValueId value) const {
    constexpr int kWideAndLow = 4 + 2;
    const int64_t elements = block_.type(value).Elements().Evaluate(ones_);
    return std::min(elements, kMostBytes / kWideAndLow) * kWideAndLow;
  }

  const Block& block_;
  SlotTable slots_;
  const std::vector<bool> reached_;  // by value id
  std::vector<bool> reach_loss_;     // by op id
  SymbolValues ones_;
};

// A graph whose source side is low and whose sink side is f32.
class Placement {
 public:
  Placement(DType low, absl::Span<const OpId> open,
            absl::Span<const Decision> decisions)
      : low_(low), decisions_(decisions), nodes_(decisions.size(), -1) {
    for (OpId op : open) nodes_[op.index()] = cut_.AddNode();
  }

  void Add(const Site& site) {
    if (site.readers.size() == site.differentiable.size()) {
      AddCast(site.producer, site.readers, 2 * site.bytes);
    } else {
      AddCast(site.producer, site.readers, site.bytes);
      AddCast(site.producer, site.differentiable, site.bytes);
    }
  }

  // By op id; of open ops alone.
  std::vector<bool> Solve() {
    const std::vector<bool> low = cut_.Solve();
    std::vector<bool> by_op(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      by_op[i] = nodes_[i] >= 0 && low[nodes_[i]];
    }
    return by_op;
  }

 private:
  // A side is a node, or one of these.
  static constexpr int kLow = -1, kF32 = -2;

  int NodeOf(const Side& side) const {
    if (side.op.valid() && nodes_[side.op.index()] >= 0) {
      return nodes_[side.op.index()];
    }
    const DType dtype =
        side.op.valid() ? decisions_[side.op.index()].precision : side.fixed;
    return dtype == low_ ? kLow : kF32;
  }

  // Costs `capacity` where `from` is low and `to` f32.
  void AddArc(int from, int to, int64_t capacity, int64_t back = 0) {
    if (from >= 0 && to >= 0) {
      cut_.AddEdge(from, to, capacity, back);
      return;
    }
    if (from == kLow && to >= 0) cut_.FromSource(to, capacity);
    if (from >= 0 && to == kF32) cut_.ToSink(from, capacity);
    if (back > 0) AddArc(to, from, back);
  }

  // One cast serves all readers that are not as the producer.
  void AddCast(const Side& producer, const Readers& readers, int64_t bytes) {
    const int from = NodeOf(producer);
    absl::InlinedVector<int, 4> to;
    for (const Side& reader : readers) {
      const int node = NodeOf(reader);
      if (node != from && std::find(to.begin(), to.end(), node) == to.end()) {
        to.push_back(node);
      }
    }
    if (to.empty()) return;
    if (to.size() == 1) {
      AddArc(from, to[0], bytes, bytes);
      return;
    }
    if (from != kF32) {
      const int widened = cut_.AddNode();
      AddArc(from, widened, bytes);
      for (int reader : to) AddArc(widened, reader, MinCut::kNever);
    }
    if (from != kLow) {
      const int narrowed = cut_.AddNode();
      AddArc(narrowed, from, bytes);
      for (int reader : to) AddArc(reader, narrowed, MinCut::kNever);
    }
  }

  const DType low_;
  const absl::Span<const Decision> decisions_;
  MinCut cut_;
  std::vector<int> nodes_;  // by op id; -1: decided
};

}  // namespace

void PlaceByCost(const Program& program, DType low, absl::Span<const OpId> open,
                 std::vector<Decision>* decisions) {
  if (open.empty()) return;
  Placement placement(low, open, *decisions);
  Sites(program).ForEach([&](const Site& site) { placement.Add(site); });
  const std::vector<bool> is_low = placement.Solve();
  for (OpId op : open) {
    Decision& decision = (*decisions)[op.index()];
    decision.precision = is_low[op.index()] ? low : DType::kF32;
    decision.reason = Reason::kMinCut;
    decision.because_of.clear();
  }
}

}  // namespace passes
}  // namespace halftone

#include "passes/lower/recompute_choice.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/symbol_values.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/memory_line.h"

namespace halftone {
namespace passes {
namespace {

// What computing and moving are held against each other with: the target's
// newest device, or one core with AVX2, of which some 60 GFlop/s and 10 GB/s
// are usual. Never a prediction.
const DeviceRates& RatesToCompare(const Target& target) {
  static const auto* const core = new DeviceRates{"core", 10e9, 60e9, 60e9, 0};
  return target.devices.empty() ? *core : target.devices.front();
}

constexpr int kNever = std::numeric_limits<int>::max();

// Of a forward op that can run again.
struct Unit {
  OpId op;
  int place = 0;
  std::vector<int> inputs;  // units
  int readers = 0;          // units
  int64_t kept = 0;         // bytes that backward reads
  int64_t all = 0;          // bytes that it makes
  int last_forward = 0;     // where the forward part last reads these
  int first = kNever;       // where backward first reads them
  int last = -1;            // and last
  double seconds = 0;
  int64_t unpacked = 0,
          packed = 0;  // what compressing is about, and makes of it
  // ---- What was chosen so far.
  bool repeated = false, compressed = false;
  int again = kNever;   // where its copy stands
  int until = -1;       // where what it makes, or its copy, is read last
  int needed = kNever;  // where the first copy reads it

  // Nothing of it lies in memory when backward begins anyway.
  bool is_passing() const { return first == kNever; }
  int64_t bytes() const { return is_passing() ? all : kept; }
};

class Chooser {
 public:
  Chooser(const ForwardPart& forward, const Target& target, int64_t samples)
      : forward_(forward),
        block_(forward.block()),
        rates_(RatesToCompare(target)),
        line_(static_cast<int>(forward.ops().size())),
        unit_of_(block_.op_limit(), -1) {
    symbols_.fill(1);
    symbols_[0] = std::max<int64_t>(samples, 1);
    most_steps_ = std::clamp<int64_t>(
        3'000'000 / (static_cast<int64_t>(forward.ops().size()) + 1), 64, 4096);
    MakeUnits();
    FillLine();
  }

  // Before Run.
  void MayCompress(const std::vector<Compressible>& found,
                   const proto::Compress& compress);
  void Run(int64_t within);
  // By op id.
  std::vector<bool> Repeated() const {
    return Chosen([](const Unit& unit) { return unit.repeated; });
  }
  std::vector<bool> Compressed() const {
    return Chosen([](const Unit& unit) { return unit.compressed; });
  }

 private:
  struct Candidate {
    int unit;
    bool pack;  // or made again
    double seconds;
    int64_t bytes;  // that are free then
  };
  template <typename Is>
  std::vector<bool> Chosen(const Is& is) const {
    std::vector<bool> chosen(block_.op_limit());
    for (const Unit& unit : units_) chosen[unit.op.index()] = is(unit);
    return chosen;
  }
  int64_t BytesOf(ValueId value) const {
    constexpr int64_t kAlignment = 256;  // that of the planner
    const TensorType& type = block_.type(value);
    const int64_t bytes =
        type.Elements().Evaluate(symbols_) * SizeOf(type.dtype);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  double SecondsOf(const Op& op) const;
  double FlopsOfAll(const Block& block, const Op& op) const;
  void MakeUnits();
  // Fills the line with what is there if nothing is repeated.
  void FillLine();
  // The candidates, the cheapest first.
  std::vector<Candidate> Order() const;

  // Changes that can be undone.
  void Add(int first, int last, int64_t bytes) {
    if (first > last) return;
    line_.Add(first, last, bytes);
    added_.push_back({first, last, bytes});
    if (bytes > 0) {
      touched_first_ = std::min(touched_first_, first);
      touched_last_ = std::max(touched_last_, last);
    }
  }
  Unit& Change(int unit) {
    changed_.emplace_back(unit, units_[unit]);
    return units_[unit];
  }
  void Undo();
  // Whether it was repeated and stays so. The copies that it needs may take
  // memory up to `room`.
  bool Try(int unit, int64_t room);
  bool TryToPack(int unit);
  void Move(int unit, int place);
  void Need(int unit, int place);

  const ForwardPart& forward_;
  const Block& block_;
  const DeviceRates& rates_;
  SymbolValues symbols_;
  MemoryLine line_;
  std::vector<Unit> units_;   // in order
  std::vector<int> unit_of_;  // by op id
  int64_t most_steps_ = 0;    // of a candidate's copies
  struct Added {
    int first, last;
    int64_t bytes;
  };
  std::vector<Added> added_;
  std::vector<std::pair<int, Unit>> changed_;
  std::vector<std::pair<int, int>> moves_;  // unit, place
  int touched_first_ = kNever, touched_last_ = -1;
};

double Chooser::FlopsOfAll(const Block& block, const Op& op) const {
  double flops = 0;
  if (op.body != nullptr) {
    for (OpId id : op.body->ops()) {
      flops += FlopsOfAll(*op.body, op.body->op(id));
    }
  } else if (const FlopsOf count = op.schema->flops()) {
    flops = static_cast<double>(count(block, op).Evaluate(symbols_));
  }
  return flops;
}

double Chooser::SecondsOf(const Op& op) const {
  if (IsPlainView(block_, op)) return 0;
  double bytes = 0;
  for (ValueId in : op.inputs.all()) bytes += BytesOf(in);
  for (ValueId out : op.outputs.all()) bytes += BytesOf(out);
  const bool low =
      !op.outputs.all().empty() && IsLow(block_.dtype(op.outputs.all()[0]));
  return std::max(bytes / rates_.memory,
                  FlopsOfAll(block_, op) / (low ? rates_.low : rates_.f32));
}

void Chooser::MakeUnits() {
  for (int place = 0; place < forward_.backward(); ++place) {
    const OpId id = forward_.ops()[place];
    const Op& op = block_.op(id);
    if (!forward_.IsRepeatable(id) || IsPlainView(block_, op)) continue;
    Unit unit;
    unit.op = id;
    unit.place = unit.last_forward = unit.until = place;
    unit.seconds = SecondsOf(op);
    for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
      const ValueId in = op.inputs.all()[i];
      const OpId owner = forward_.OwnerOf(in);
      const int input = owner.valid() ? unit_of_[owner.index()] : -1;
      if (input < 0 || !forward_.IsReplaceable(in) || !ReadsContent(op, i)) {
        continue;
      }
      unit.inputs.push_back(input);
      ++units_[input].readers;
    }
    for (ValueId out : op.outputs.all()) {
      if (forward_.IsReplaceable(out)) unit.all += BytesOf(out);
    }
    unit_of_[id.index()] = static_cast<int>(units_.size());
    units_.push_back(std::move(unit));
  }
}

// Values that lie where a collective or a commit wants them are there all the
// time: they are no matter of the line.
void Chooser::FillLine() {
  struct Life {
    int last = -1, last_forward = -1, first = kNever;
    bool elsewhere = false;
  };
  std::vector<Life> lives(block_.value_limit());  // by the owner's value
  std::vector<ValueId> roots(block_.value_limit());
  for (size_t place = 0; place < forward_.ops().size(); ++place) {
    const Op& op = block_.op(forward_.ops()[place]);
    for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
      const ValueId root = roots[op.inputs.all()[i].index()];
      if (!root.valid() || !ReadsContent(op, i)) continue;
      Life& life = lives[root.index()];
      life.last = static_cast<int>(place);
      if (life.last < forward_.backward()) {
        life.last_forward = life.last;
      } else {
        life.first = std::min(life.first, life.last);
      }
      life.elsewhere |= op.schema->name() == "all_reduce";
    }
    const bool view = IsPlainView(block_, op);
    for (ValueId out : op.outputs.all()) {
      roots[out.index()] = view ? roots[op.inputs.all()[0].index()] : out;
      Life& life = lives[out.index()];
      life.last = life.last_forward = static_cast<int>(place);
      life.elsewhere =
          op.schema->name() == "all_reduce" || op.role == Role::kOptimize;
    }
  }
  for (int i = 0; i < block_.value_limit(); ++i) {
    const ValueId id(i);
    const Life& life = lives[i];
    if (roots[i] != id || life.elsewhere) continue;
    const OpId op = block_.value(id).op();
    line_.Add(forward_.PlaceOf(op), life.last, BytesOf(id));
    const int number = unit_of_[op.index()];
    if (number < 0 || life.first == kNever || !forward_.IsReplaceable(id)) {
      continue;
    }
    Unit& unit = units_[number];
    unit.kept += BytesOf(id);
    unit.last_forward = std::max(unit.last_forward, life.last_forward);
    unit.first = std::min(unit.first, life.first);
    unit.last = unit.until = std::max(unit.last, life.last);
  }
}

std::vector<Chooser::Candidate> Chooser::Order() const {
  std::vector<double> price(units_.size());
  std::vector<Candidate> order;
  for (size_t i = 0; i < units_.size(); ++i) {
    const Unit& unit = units_[i];
    const int number = static_cast<int>(i);
    price[i] = unit.seconds;
    for (int input : unit.inputs) {
      if (units_[input].is_passing()) price[i] += price[input];
    }
    if (unit.is_passing()) continue;
    order.push_back({number, false, price[i], unit.kept});
    if (unit.unpacked == 0) continue;
    const auto moved = static_cast<double>(2 * (unit.unpacked + unit.packed));
    order.push_back(
        {number, true, moved / rates_.memory, unit.unpacked - unit.packed});
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     return a.seconds * static_cast<double>(b.bytes) <
                            b.seconds * static_cast<double>(a.bytes);
                   });
  return order;
}

// Its copy stands there now, and reads what it reads.
void Chooser::Move(int number, int place) {
  Unit& unit = Change(number);
  const bool alone = unit.is_passing() && unit.readers == 1;
  if (unit.again == kNever) {
    unit.until = std::max(unit.is_passing() ? place : unit.last, place);
    Add(place, unit.until, unit.bytes());
  } else {
    Add(place, unit.again - 1, unit.bytes());
    // Its one reader has moved, too.
    if (alone) {
      Add(place + 1, unit.until, -unit.bytes());
      unit.until = place;
    }
  }
  unit.again = place;
  for (int input : unit.inputs) moves_.emplace_back(input, place);
}

void Chooser::Need(int number, int place) {
  Unit& unit = Change(number);
  unit.needed = std::min(unit.needed, place);
  if (!unit.repeated && unit.is_passing()) unit.repeated = true;
  if (unit.repeated && place < unit.again) {
    Move(number, place);
  } else if (place > unit.until) {
    Add(unit.until + 1, place, unit.bytes());
    units_[number].until = place;
  }
}

void Chooser::Undo() {
  for (const Added& added : added_) {
    line_.Add(added.first, added.last, -added.bytes);
  }
  for (auto it = changed_.rbegin(); it != changed_.rend(); ++it) {
    units_[it->first] = std::move(it->second);
  }
}

bool Chooser::Try(int number, int64_t room) {
  added_.clear();
  changed_.clear();
  moves_.clear();
  Unit& unit = Change(number);
  const int place = std::min(unit.first, unit.needed);
  unit.repeated = true;
  Add(unit.last_forward + 1, unit.until, -unit.kept);
  unit.last = unit.until;
  Move(number, place);
  // From its place on it lay in memory before, too.
  touched_first_ = kNever;
  touched_last_ = -1;
  int64_t steps = 0;
  while (!moves_.empty() && steps <= most_steps_) {
    const auto [input, at] = moves_.back();
    moves_.pop_back();
    if (units_[input].compressed) steps = most_steps_;
    Need(input, at);
    ++steps;
  }
  if (steps <= most_steps_ &&
      line_.Most(touched_first_, touched_last_) <= room) {
    return true;
  }
  Undo();
  return false;
}

// A copy that is there already reads it as it was.
bool Chooser::TryToPack(int number) {
  Unit& unit = units_[number];
  if (unit.needed != kNever) return false;
  unit.compressed = true;
  line_.Add(unit.last_forward + 1, unit.first - 1, unit.packed - unit.unpacked);
  return true;
}

void Chooser::MayCompress(const std::vector<Compressible>& found,
                          const proto::Compress& compress) {
  for (const Compressible& kept : found) {
    const int number = unit_of_[kept.op.index()];
    if (number < 0) continue;
    for (const Compressible::Value& value : kept.values) {
      const PackedBytes bytes = PackedBytesOf(block_, value, compress);
      units_[number].unpacked += bytes.before * symbols_[0];
      units_[number].packed += bytes.after * symbols_[0];
    }
  }
}

void Chooser::Run(int64_t within) {
  const std::vector<Candidate> order = Order();
  constexpr int kSweeps = 6;
  for (int sweep = 0; sweep < kSweeps && line_.Most() > within; ++sweep) {
    bool changed = false;
    for (const Candidate& candidate : order) {
      const Unit& unit = units_[candidate.unit];
      const int64_t most = line_.Most();
      if (most <= within) break;
      const int place = std::min(unit.first, unit.needed);
      if (unit.repeated || unit.compressed ||
          line_.Most(unit.last_forward + 1, place - 1) <= within) {
        continue;
      }
      // Later, what helps here may do no good elsewhere, but no harm.
      changed |= candidate.pack
                     ? TryToPack(candidate.unit)
                     : Try(candidate.unit,
                           sweep == 0 ? within : std::max(within, most - 1));
    }
    if (!changed && sweep > 0) break;
  }
}

}  // namespace

std::vector<bool> ChooseRepeated(const ForwardPart& forward,
                                 const Target& target, int64_t samples,
                                 int64_t within) {
  Chooser chooser(forward, target, samples);
  chooser.Run(within);
  return chooser.Repeated();
}

std::vector<Compressible> ChoosePacked(
    const ForwardPart& forward, const Target& target,
    const std::vector<Compressible>& compressible,
    const proto::Compress& compress, int64_t samples, int64_t within) {
  Chooser chooser(forward, target, samples);
  chooser.MayCompress(compressible, compress);
  chooser.Run(within);
  const std::vector<bool> compressed = chooser.Compressed();
  std::vector<Compressible> packed;
  for (const Compressible& kept : compressible) {
    if (compressed[kept.op.index()]) packed.push_back(kept);
  }
  return packed;
}

}  // namespace passes
}  // namespace halftone

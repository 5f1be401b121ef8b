#include "runtime/compare/match_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/cast_names.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace runtime {
namespace {

absl::Status DifferError(absl::string_view what, const std::string& reference,
                         const std::string& compared) {
  return MakeError(ExitCode::kDiffer,
                   absl::StrCat("the two programs are not of one model: ", what,
                                ": ", reference, " in the reference, ",
                                compared, " in the compared one"));
}

// A value of one program as it is looked for.
struct Candidate {
  const Block* block = nullptr;
  ValueId value;
  std::string name, original, op, fusion;
  bool backward = false;
  int scaler = -1;
};

// All values that ops of forward and backward make and errors are measured of
// or that tell the ops after them what to read, in program order.
class Collector {
 public:
  explicit Collector(const Entry& entry) : entry_(entry) {}

  void Run() { Walk(entry_.block(), ""); }
  // What is there before any op, too.
  void AddInputs();

  std::vector<Candidate> candidates;
  // Of a fusion's body: the value outside that stands for it.
  absl::flat_hash_map<ValueKey, ValueKey> outside;
  // Names under which gradients of several readers meet.
  absl::flat_hash_set<std::string> sums;

 private:
  void Walk(const Block& block, const std::string& fusion);
  void EnterBody(const Block& block, const Op& op);
  void Take(const Block& block, const Op& op, const std::string& fusion);
  int ScalerOf(const Block& block, ValueId value) const {
    const auto found = scalers_.find({&block, value.index()});
    return found == scalers_.end() ? -1 : found->second;
  }

  const Entry& entry_;
  absl::flat_hash_map<ValueKey, int> scalers_;
};

// Floats are measured; places of maxima and masks are what ops after them go by
// and must be the reference's for those to be measured.
bool IsComparable(DType dtype) {
  return IsMeasured(dtype) || dtype == DType::kU8;
}

void Collector::AddInputs() {
  const Block& block = entry_.block();
  for (int i = 0; i < block.value_limit(); ++i) {
    const Value& value = block.value(ValueId(i));
    if (value.erased || value.op().valid()) continue;
    const std::string name(block.name(value.id));
    if (!IsComparable(block.dtype(value.id)) || name[0] == '@') continue;
    candidates.push_back({&block, value.id, name, OriginalName(name)});
  }
}

int NumberOfScaler(absl::string_view cell) {
  int number = 0;
  if (absl::ConsumePrefix(&cell, absl::StrCat(kLossScaling, "."))) {
    (void)absl::SimpleAtoi(cell, &number);
  }
  return number;
}

void Collector::EnterBody(const Block& block, const Op& op) {
  const Block& body = *op.body;
  const std::vector<ValueId> feeds = body.Feeds();
  for (size_t i = 0; i < feeds.size(); ++i) {
    const ValueId outer = op.inputs.all()[i];
    const ValueKey key(&body, feeds[i].index());
    outside[key] = {&block, outer.index()};
    const int scaler = ScalerOf(block, outer);
    if (scaler >= 0) scalers_[key] = scaler;
  }
  for (size_t i = 0; i < body.body_results().size(); ++i) {
    outside[{&body, body.body_results()[i].index()}] = {
        &block, op.outputs.all()[i].index()};
  }
  Walk(body, std::string(block.name(op)));
  for (size_t i = 0; i < body.body_results().size(); ++i) {
    const int scaler = ScalerOf(body, body.body_results()[i]);
    if (scaler < 0) continue;
    scalers_[{&block, op.outputs.all()[i].index()}] = scaler;
  }
}

void Collector::Take(const Block& block, const Op& op,
                     const std::string& fusion) {
  int scaler = -1;
  const bool seed = op.schema->name() == "gradient_seed";
  for (const ValueId input : op.inputs.all()) {
    if (scaler < 0) scaler = ScalerOf(block, input);
    const CellId cell = block.value(input).cell();
    if (seed && cell.valid()) {
      const std::string& name = block.program().cell(cell).name;
      if (absl::StartsWith(name, kLossScaling)) scaler = NumberOfScaler(name);
    }
  }
  const bool backward = op.role == Role::kBackward;
  if (!backward && op.role != Role::kForward && !seed) return;
  for (const ValueId output : op.outputs.all()) {
    const std::string name(block.name(output));
    if (!IsComparable(block.dtype(output)) || name[0] == '@') continue;
    if ((backward || seed) && scaler >= 0) {
      scalers_[{&block, output.index()}] = scaler;
    }
    if (op.schema->name() == "sum" && backward) sums.insert(name);
    if (seed) continue;
    candidates.push_back({&block, output, name, OriginalName(name),
                          std::string(block.name(op)), fusion, backward,
                          ScalerOf(block, output)});
  }
}

void Collector::Walk(const Block& block, const std::string& fusion) {
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.body != nullptr) {
      EnterBody(block, op);
    } else {
      Take(block, op, fusion);
    }
  }
}

// Of "x.grad.1", where several readers' gradients meet.
bool IsPartOfSum(absl::string_view name) {
  const size_t dot = name.rfind('.');
  int number = 0;
  return dot != absl::string_view::npos &&
         absl::EndsWith(name.substr(0, dot), kGradientSuffix) &&
         absl::SimpleAtoi(name.substr(dot + 1), &number);
}

class Matcher {
 public:
  Matcher(const Entry& reference, const Entry& compared)
      : reference_(reference), compared_(compared) {}

  absl::StatusOr<ValueMatch> Run();

 private:
  // The reference's counterpart, or null.
  const Candidate* CounterpartOf(const Candidate& candidate) const;
  absl::Status Add(const Candidate& candidate, const Candidate& counterpart);
  int ReferenceOf(const Candidate& counterpart, const TensorType& type);
  void AddInputs();

  Collector reference_, compared_;
  std::map<std::string, std::vector<const Candidate*>> by_original_;
  std::map<std::pair<const Candidate*, Layout>, int> numbers_;
  ValueMatch match_;
};

const Candidate* Matcher::CounterpartOf(const Candidate& candidate) const {
  // The sum of the readers of all copies is the value's gradient; a copy's own
  // is a part of it.
  if (candidate.name != candidate.original &&
      compared_.sums.count(candidate.original) > 0) {
    return nullptr;
  }
  const auto found = by_original_.find(candidate.original);
  if (found == by_original_.end()) return nullptr;
  const Candidate* best = nullptr;
  for (const Candidate* one : found->second) {
    if (one->backward != candidate.backward) continue;
    if (IsPartOfSum(one->original) && one->op != candidate.op) continue;
    if (one->name != one->original &&
        reference_.sums.count(one->original) > 0) {
      continue;
    }
    if (best == nullptr || one->name == candidate.name) best = one;
  }
  return best;
}

int Matcher::ReferenceOf(const Candidate& counterpart, const TensorType& type) {
  const auto [at, is_new] = numbers_.emplace(
      std::make_pair(&counterpart, type.layout), match_.references.size());
  if (!is_new) return at->second;
  match_.references.push_back({counterpart.name, type, counterpart.scaler});
  match_.kept[{counterpart.block, counterpart.value.index()}].push_back(
      at->second);
  return at->second;
}

absl::Status Matcher::Add(const Candidate& candidate,
                          const Candidate& counterpart) {
  const TensorType& type = candidate.block->type(candidate.value);
  const TensorType& other = counterpart.block->type(counterpart.value);
  // Bytes mean the same where ops are kept the same alone.
  if (!IsMeasured(type.dtype) &&
      (other.dtype != type.dtype || other.dims != type.dims)) {
    return absl::OkStatus();
  }
  if (type.dims != other.dims) {
    return DifferError(candidate.name,
                       ToString(other, counterpart.block->program().symbols()),
                       ToString(type, candidate.block->program().symbols()));
  }
  MatchedValue value;
  value.name = candidate.name;
  value.op = candidate.op;
  value.fusion = candidate.fusion;
  value.backward = candidate.backward;
  value.scaler = candidate.scaler;
  value.dtype = type.dtype;
  value.reference = ReferenceOf(counterpart, type);
  match_.compared[{candidate.block, candidate.value.index()}] =
      static_cast<int>(match_.values.size());
  match_.values.push_back(std::move(value));
  return absl::OkStatus();
}

// Arguments of bodies are values outside, as results are; both ways.
template <typename Known>
void ShareWithBodies(const Collector& collector, Known* known) {
  const auto share = [known](const ValueKey& from, const ValueKey& to) {
    const auto found = known->find(from);
    if (found == known->end()) return;
    auto shared = found->second;  // which an insertion may move
    (*known)[to] = std::move(shared);
  };
  for (const auto& [inner, outer] : collector.outside) share(inner, outer);
  for (const auto& [inner, outer] : collector.outside) share(outer, inner);
}

void Matcher::AddInputs() {
  for (const auto& [key, number] : match_.compared) {
    const Block& block = *key.first;
    const OpId op = block.value(ValueId(key.second)).op();
    if (!op.valid()) continue;
    std::vector<int>& inputs = match_.values[number].inputs;
    for (const ValueId input : block.op(op).inputs.all()) {
      const auto found = match_.compared.find({&block, input.index()});
      if (found == match_.compared.end()) continue;
      inputs.push_back(match_.values[found->second].reference);
    }
  }
  // A fusion's result is made by it and in its body, in no order.
  for (MatchedValue& value : match_.values) {
    absl::c_sort(value.inputs);
    value.inputs.erase(std::unique(value.inputs.begin(), value.inputs.end()),
                       value.inputs.end());
  }
}

absl::StatusOr<ValueMatch> Matcher::Run() {
  reference_.AddInputs();
  reference_.Run();
  compared_.Run();
  for (const Candidate& candidate : reference_.candidates) {
    by_original_[candidate.original].push_back(&candidate);
  }
  for (const Candidate& candidate : compared_.candidates) {
    const Candidate* const counterpart = CounterpartOf(candidate);
    if (counterpart == nullptr) {
      if (!IsMeasured(candidate.block->dtype(candidate.value))) continue;
      match_.unmatched.push_back(candidate.name);
      continue;
    }
    HT_RETURN_IF_ERROR(Add(candidate, *counterpart));
  }
  ShareWithBodies(reference_, &match_.kept);
  ShareWithBodies(compared_, &match_.compared);
  AddInputs();
  if (match_.values.empty()) {
    return MakeError(ExitCode::kDiffer,
                     "the two programs have no value of the same name");
  }
  return std::move(match_);
}

// What data has to have for the two, by name.
std::map<std::string, std::string> FeedsOf(const Entry& entry) {
  std::map<std::string, std::string> feeds;
  const Block& block = entry.block();
  for (const ValueId feed : block.Feeds()) {
    if (block.name(feed)[0] == '@') continue;
    feeds[std::string(block.name(feed))] =
        ToString(block.type(feed), block.program().symbols());
  }
  return feeds;
}

std::map<std::string, std::string> ParametersOf(const Program& program) {
  std::map<std::string, std::string> parameters;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kParameter &&
        cell.kind != CellKind::kStatistic) {
      continue;
    }
    TensorType type = cell.type;  // of whatever dtype and layout
    type.dtype = DType::kF32;
    type.layout = Layout::kRowMajor;
    parameters[cell.name] = ToString(type, program.symbols());
  }
  return parameters;
}

absl::Status CheckSame(const char* what,
                       const std::map<std::string, std::string>& reference,
                       const std::map<std::string, std::string>& compared) {
  std::set<std::string> names;
  for (const auto& [name, type] : reference) names.insert(name);
  for (const auto& [name, type] : compared) names.insert(name);
  const auto text = [](const std::map<std::string, std::string>& all,
                       const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string("none") : found->second;
  };
  for (const std::string& name : names) {
    const std::string one = text(reference, name), other = text(compared, name);
    if (one != other) {
      return DifferError(absl::StrCat(what, " ", name), one, other);
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsMeasured(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

std::string OriginalName(absl::string_view name) {
  static const std::vector<std::string>& copies =
      *new std::vector<std::string>{std::string(CastSuffix(DType::kF16)),
                                    std::string(CastSuffix(DType::kBF16)),
                                    std::string(CastSuffix(DType::kF32)),
                                    std::string(Name(Layout::kRowMajor)),
                                    std::string(Name(Layout::kChannelsLast))};
  std::string original;
  for (const absl::string_view part : absl::StrSplit(name, '.')) {
    if (absl::c_linear_search(copies, part)) continue;
    absl::StrAppend(&original, original.empty() ? "" : ".", part);
  }
  return original;
}

absl::StatusOr<ValueMatch> MatchValues(const Program& reference,
                                       const Program& compared,
                                       absl::string_view entry) {
  const Entry* const one = reference.FindEntry(entry);
  const Entry* const other = compared.FindEntry(entry);
  if (one == nullptr || other == nullptr) {
    return DifferError(absl::StrCat("entry ", entry),
                       one == nullptr ? "none" : "one",
                       other == nullptr ? "none" : "one");
  }
  HT_RETURN_IF_ERROR(CheckSame("feed", FeedsOf(*one), FeedsOf(*other)));
  HT_RETURN_IF_ERROR(
      CheckSame("parameter", ParametersOf(reference), ParametersOf(compared)));
  return Matcher(*one, *other).Run();
}

}  // namespace runtime
}  // namespace halftone

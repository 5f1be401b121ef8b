#include "graph/io/model_graph.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/io/model_values.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/place.h"
#include "graph/verify/limits.h"

namespace halftone {
namespace {

// Comparing a word with all names is slow; nobody reads so many by hand.
constexpr size_t kMaxHints = 20000;
constexpr int kMaxOutputs = 16384;  // of one slot

using OpIndices = absl::InlinedVector<int, 2>;

class Orderer {
 public:
  Orderer(const ModelFile& file, const Block& block,
          absl::flat_hash_set<std::string>* lost)
      : file_(file), model_(*file.model), block_(block), lost_(*lost) {}

  std::vector<int> Run(ErrorList* errors);

 private:
  absl::Status CheckOp(int index);
  absl::Status CheckInSlots(int index, const OpSchema& schema) const;
  // Notes what the op defines.
  absl::Status Define(int index, const OpSchema& schema);
  absl::Status DefineValue(int index, const std::string& slot,
                           const std::string& name);
  absl::Status Connect(int index);
  absl::StatusOr<std::vector<int>> Sort();
  void Lose(int index);
  absl::Status Cycle(const std::vector<int>& missing) const;
  std::vector<std::string> AllNames() const;
  template <typename... Parts>
  absl::Status Error(int index, const Parts&... parts) const {
    const proto::OpNode& node = model_.op(index);
    return AtOp(ModelError(parts...), block_.program(), Line(index),
                NameOf(node), node.type());
  }
  int Line(int index) const {
    return index < static_cast<int>(file_.op_lines.size())
               ? file_.op_lines[index]
               : 0;
  }
  std::string InLine(int index) const {
    return Line(index) > 0 ? absl::StrCat(" in line ", Line(index)) : "";
  }

  const ModelFile& file_;
  const proto::Model& model_;
  const Block& block_;
  absl::flat_hash_set<std::string>& lost_;  // names that are ill defined
  std::vector<bool> is_lost_;               // by op
  absl::flat_hash_map<absl::string_view, int> op_of_name_;
  // Values by name: the op that defines them.
  absl::flat_hash_map<std::string, int> producer_;
  // Producers of the op's inputs, with repetitions.
  std::vector<OpIndices> producers_;
};

absl::Status Orderer::CheckOp(int index) {
  const proto::OpNode& node = model_.op(index);
  if (node.type().empty()) {
    return ModelError(PlaceOf(block_.program(), Line(index)), "op ",
                      NameOf(node), ": expected a type, found nothing");
  }
  const OpSchema* schema = Ops().Find(node.type());
  if (schema == nullptr) {
    std::vector<std::string> names;
    for (const OpSchema* known : Ops().All()) {
      if (!known->internal()) names.push_back(known->name());
    }
    for (const auto& alias : Ops().Aliases()) names.push_back(alias.first);
    return Error(
        index, "unknown op ", node.type(), NearestHint(node.type(), names),
        " (all: halftone ops); one of your own comes with --op-library");
  }
  if (schema->internal()) {
    return Error(index, "expected an op of a forward program, found ",
                 schema->name(),
                 ", which the compiler alone makes; leave it out: gradients, "
                 "reductions and updates follow from the model and the "
                 "strategy");
  }
  const std::string& name = NameOf(node);
  if (const std::string wrong = BadName(name); !wrong.empty()) {
    return Error(index, "its name ", wrong,
                 "; give it a name, or its first output one");
  }
  if (name[0] == '@') {
    return Error(index, "names that begin with @ are Halftone's own; rename ",
                 "it");
  }
  const auto [it, fresh] = op_of_name_.try_emplace(name, index);
  if (!fresh) {
    return Error(index, "two ops are called ", name, ", the other",
                 InLine(it->second), "; rename one");
  }
  HT_RETURN_IF_ERROR(CheckInSlots(index, *schema));
  return Define(index, *schema);
}

absl::Status Orderer::CheckInSlots(int index, const OpSchema& schema) const {
  std::vector<bool> seen(schema.inputs().size());
  for (const proto::SlotVars& in : model_.op(index).in()) {
    const int slot = schema.FindInput(SlotName(schema, in.slot()));
    if (slot < 0) {
      std::vector<std::string> names;
      for (const Slot& s : schema.inputs()) names.push_back(s.name);
      return Error(index, "no input slot ", in.slot(),
                   NearestHint(in.slot(), names), "; expected one of ",
                   absl::StrJoin(names, " "));
    }
    if (seen[slot]) {
      return Error(index, "slot ", in.slot(), " is given twice",
                   schema.inputs()[slot].list() ? "; repeat var: in it" : "");
    }
    seen[slot] = true;
    if (in.var_size() == 0 && !schema.inputs()[slot].list()) {
      return Error(index, "slot ", in.slot(), ": expected var: \"NAME\", ",
                   "found nothing");
    }
  }
  return absl::OkStatus();
}

absl::Status Orderer::DefineValue(int index, const std::string& slot,
                                  const std::string& name) {
  if (const std::string wrong = BadName(name); !wrong.empty()) {
    return Error(index, "slot ", slot, ": the value", name.empty() ? "" : " ",
                 absl::string_view(name).substr(0, 60), ": its name ", wrong);
  }
  if (name[0] == '@') {
    return Error(index, "slot ", slot, ": ", name, ": names that begin with @ ",
                 "are Halftone's own; rename it");
  }
  if (block_.FindValue(name).valid() ||
      block_.program().FindCell(name).valid()) {
    return Error(index, "slot ", slot, ": two definitions of ", name,
                 ", the other is a feed, param or stat; rename one");
  }
  const auto [it, fresh] = producer_.try_emplace(name, index);
  if (!fresh) {
    return Error(index, "slot ", slot, ": two definitions of ", name,
                 ", the other by op ", NameOf(model_.op(it->second)),
                 InLine(it->second), "; rename one");
  }
  return absl::OkStatus();
}

absl::Status Orderer::Define(int index, const OpSchema& schema) {
  const proto::OpNode& node = model_.op(index);
  std::vector<bool> seen(schema.outputs().size());
  for (const proto::SlotVars& out : node.out()) {
    const int slot = schema.FindOutput(out.slot());
    if (slot < 0) {
      std::vector<std::string> names;
      for (const Slot& s : schema.outputs()) names.push_back(s.name);
      return Error(index, "no output slot ", out.slot(),
                   NearestHint(out.slot(), names), "; expected one of ",
                   absl::StrJoin(names, " "));
    }
    if (seen[slot]) {
      return Error(index, "slot ", out.slot(), " is given twice");
    }
    seen[slot] = out.var_size() > 0;
    if (out.var_size() > kMaxOutputs) {
      return Error(index, "slot ", out.slot(), ": expected at most ",
                   kMaxOutputs, " values, found ", out.var_size());
    }
    for (const std::string& var : out.var()) {
      HT_RETURN_IF_ERROR(DefineValue(index, out.slot(), var));
    }
  }
  // A required output that is not named is called "<op>.<Slot>".
  for (size_t s = 0; s < seen.size(); ++s) {
    const Slot& slot = schema.outputs()[s];
    if (seen[s] || slot.optional() || slot.list()) continue;
    HT_RETURN_IF_ERROR(DefineValue(index, slot.name,
                                   absl::StrCat(NameOf(node), ".", slot.name)));
  }
  return absl::OkStatus();
}

std::vector<std::string> Orderer::AllNames() const {
  std::vector<std::string> names = ValueNames(block_);
  if (names.size() + producer_.size() > kMaxHints) return {};
  for (const auto& [name, op] : producer_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status Orderer::Connect(int index) {
  for (const proto::SlotVars& in : model_.op(index).in()) {
    for (const std::string& var : in.var()) {
      if (lost_.contains(var)) return ErrorList::Follows();
      const auto it = producer_.find(var);
      if (it != producer_.end()) {
        producers_[index].push_back(it->second);
      } else if (!block_.FindValue(var).valid() &&
                 !block_.program().FindCell(var).valid()) {
        return Error(index, "slot ", in.slot(), ": nothing defines \"", var,
                     "\"", NearestHint(var, AllNames()),
                     "; expected a feed, param, stat or result of an op");
      }
    }
  }
  return absl::OkStatus();
}

// Kahn's algorithm; of the ops that are ready, the first in the file goes.
absl::StatusOr<std::vector<int>> Orderer::Sort() {
  const int n = model_.op_size();
  std::vector<int> missing(n);
  std::vector<OpIndices> readers(n);
  for (int i = 0; i < n; ++i) {
    missing[i] = static_cast<int>(producers_[i].size());
    for (int producer : producers_[i]) readers[producer].push_back(i);
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < n; ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<int> order;
  order.reserve(n);
  while (!ready.empty()) {
    const int op = ready.top();
    ready.pop();
    order.push_back(op);
    for (int reader : readers[op]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  if (static_cast<int>(order.size()) < n) return Cycle(missing);
  return order;
}

// Names the ops of one cycle. Every op that is still missing an input has a
// producer that is, so walking up from any of them ends in a cycle.
absl::Status Orderer::Cycle(const std::vector<int>& missing) const {
  int at = 0;
  while (missing[at] == 0) ++at;
  std::vector<int> path;
  std::vector<bool> passed(missing.size());
  while (!passed[at]) {
    passed[at] = true;
    path.push_back(at);
    at = *std::find_if(producers_[at].begin(), producers_[at].end(),
                       [&missing](int p) { return missing[p] > 0; });
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  // Data flows against the walk. Begin with the op that is first in the file.
  std::reverse(path.begin(), path.end());
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()),
              path.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < path.size() && i < 10; ++i) {
    names.push_back(NameOf(model_.op(path[i])));
  }
  if (path.size() > 10) names.push_back("...");
  names.push_back(names.front());
  return Error(path.front(), "expected a graph without cycles, found ",
               absl::StrJoin(names, " -> "), "; no op may need its own result");
}

void Orderer::Lose(int index) {
  is_lost_[index] = true;
  AddResults(model_.op(index), &lost_);
}

// Nothing is said of what reads the results of a wrong op: first its errors
// are to be mended.
std::vector<int> Orderer::Run(ErrorList* errors) {
  producers_.resize(model_.op_size());
  is_lost_.resize(model_.op_size());
  for (int i = 0; i < model_.op_size(); ++i) {
    if (!errors->Add(CheckOp(i))) Lose(i);
  }
  for (int i = 0; i < model_.op_size(); ++i) {
    if (!is_lost_[i] && !errors->Add(Connect(i))) Lose(i);
  }
  absl::StatusOr<std::vector<int>> order = Sort();
  if (!errors->Add(order.status())) {
    for (int i = 0; i < model_.op_size(); ++i) AddResults(model_.op(i), &lost_);
    return {};
  }
  order->erase(std::remove_if(order->begin(), order->end(),
                              [this](int i) { return is_lost_[i]; }),
               order->end());
  return *std::move(order);
}

}  // namespace

const std::string& NameOf(const proto::OpNode& node) {
  if (node.has_name()) return node.name();
  for (const proto::SlotVars& out : node.out()) {
    if (out.var_size() > 0) return out.var(0);
  }
  return node.name();
}

std::vector<std::string> ValueNames(const Block& block) {
  const Program& program = block.program();
  std::vector<std::string> names;
  if (block.value_limit() + program.num_cells() > static_cast<int>(kMaxHints)) {
    return names;
  }
  for (int i = 0; i < block.value_limit(); ++i) {
    const ValueId id(i);
    if (!block.value(id).erased) names.emplace_back(block.name(id));
  }
  for (int i = 0; i < program.num_cells(); ++i) {
    if (!block.FindValue(program.cell(CellId(i)).name).valid()) {
      names.push_back(program.cell(CellId(i)).name);
    }
  }
  return names;
}

std::vector<int> OrderOps(const ModelFile& file, const Block& block,
                          absl::flat_hash_set<std::string>* lost,
                          ErrorList* errors) {
  return Orderer(file, block, lost).Run(errors);
}

void AddResults(const proto::OpNode& node,
                absl::flat_hash_set<std::string>* names) {
  for (const proto::SlotVars& out : node.out()) {
    names->insert(out.var().begin(), out.var().end());
  }
  const OpSchema* schema = Ops().Find(node.type());
  if (schema == nullptr) return;
  for (const Slot& slot : schema->outputs()) {
    names->insert(absl::StrCat(NameOf(node), ".", slot.name));
  }
}

}  // namespace halftone

#include "tools/report/graph_data.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/decision.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/kernel_key.h"
#include "passes/report.h"
#include "tools/report/inspect_report.h"

namespace halftone {
namespace tools {
namespace {

using SortedJson = nlohmann::json;

// "f16[B,128]" by value, of those that the finished program still has, those
// inside fusions among them.
using Types = absl::flat_hash_map<std::string, std::string>;
void AddTypes(const ModelFacts& facts, Types* types) {
  const Program& program = *facts.model->program;
  const Entry* entry = program.FindEntry(facts.entry);
  if (entry == nullptr) return;
  const auto add = [&](const Block& block) {
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      for (ValueId out : block.op(id).outputs.all()) {
        if (!out.valid()) continue;
        types->try_emplace(std::string(block.name(out)),
                           ToString(block.type(out), program.symbols()));
      }
    }
  };
  add(entry->block());
  for (OpId id : entry->block().ops()) {
    const Op& op = entry->block().op(id);
    if (op.body != nullptr) add(*op.body);
  }
}

// Each text once, and its number.
class Texts {
 public:
  int Of(const std::string& text) {
    const auto [it, fresh] =
        numbers_.try_emplace(text, static_cast<int>(texts_.size()));
    if (fresh) texts_.push_back(text);
    return it->second;
  }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, int> numbers_;
};

SortedJson InputsJson(const GraphOp& op) {
  SortedJson inputs = SortedJson::array();
  for (const GraphEdge& edge : op.inputs) {
    SortedJson from =
        edge.from >= 0 ? SortedJson(edge.from) : SortedJson(edge.value);
    SortedJson input = SortedJson::array({std::move(from)});
    if (edge.cast >= 0) input.push_back(edge.cast);
    if (edge.change != GraphChange::kNone) {
      if (edge.cast < 0) input.push_back(nullptr);
      input.push_back(static_cast<int>(edge.change));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// ---- DOT.

std::string DotQuoted(const std::string& text) {
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(text,
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

const char* FillOf(const std::string& precision) {
  if (precision == "f16" || precision == "bf16") return "#dcefdc";
  return precision == "f32" ? "#f6e3cf" : "#e8e8e8";
}

// Opens and closes clusters so that `name`'s scopes are the open ones.
void MoveToScope(const std::string& name, std::vector<std::string>* open,
                 int* clusters, std::string* dot) {
  std::vector<std::string> scopes = absl::StrSplit(name, '/');
  scopes.pop_back();
  size_t same = 0;
  while (same < open->size() && same < scopes.size() &&
         (*open)[same] == scopes[same]) {
    ++same;
  }
  for (; open->size() > same; open->pop_back()) *dot += "}\n";
  for (; open->size() < scopes.size(); open->push_back(scopes[open->size()])) {
    absl::StrAppend(dot, "subgraph cluster", (*clusters)++,
                    " { label=", DotQuoted(scopes[open->size()]), "\n");
  }
}

std::string EdgeDot(const ModelFacts& facts, const GraphData& graph,
                    const GraphEdge& edge, int to) {
  const std::string from = edge.from >= 0 ? absl::StrCat("n", edge.from)
                                          : DotQuoted("value " + edge.value);
  if (edge.cast < 0) return absl::StrCat(from, " -> n", to, "\n");
  const proto::CastRow& cast = *graph.casts[edge.cast].row;
  const int64_t bytes = passes::BytesPerStep(cast, facts.samples);
  return absl::StrCat(
      from, " -> n", to, " [color=\"#c02a2a\" label=",
      DotQuoted(absl::StrCat(cast.from(), " to ", cast.to(), "\n",
                             HumanBytes(bytes), ", ", cast.fate())),
      absl::StrFormat(" penwidth=%.1f", 1 + std::log10(1.0 + bytes) / 3),
      "]\n");
}

// ---- JSON.

SortedJson OpJson(const GraphOp& op, const Types& types, bool is_diff,
                  Texts* texts) {
  const proto::OpRow& row = *op.row;
  SortedJson outputs = SortedJson::array();
  for (const proto::SlotNames& slot : row.output()) {
    for (const std::string& value : slot.value()) {
      const auto type = types.find(value);
      outputs.push_back(SortedJson::array(
          {value, texts->Of(type == types.end() ? "" : type->second)}));
    }
  }
  SortedJson json = SortedJson::array(
      {row.name(), texts->Of(row.type()), texts->Of(row.precision()),
       texts->Of(row.role()), row.line(), texts->Of(WhyText(row)), op.of,
       InputsJson(op), std::move(outputs)});
  if (is_diff) {
    json.push_back(static_cast<int>(op.change));
    json.push_back(texts->Of(op.was == nullptr
                                 ? ""
                                 : absl::StrCat(op.was->type(), " in ",
                                                op.was->precision(), ", ",
                                                WhyText(*op.was))));
  }
  return json;
}

SortedJson CastJson(const GraphCast& cast, int64_t samples, bool is_diff,
                    Texts* texts) {
  const proto::CastRow& row = *cast.row;
  std::string why = row.reason();
  if (row.because_of_size() > 0) {
    absl::StrAppend(&why, " <- ", absl::StrJoin(row.because_of(), " "));
  }
  SortedJson json = {row.name(),
                     texts->Of(row.from()),
                     texts->Of(row.to()),
                     passes::BytesPerStep(row, samples),
                     texts->Of(row.fate()),
                     texts->Of(why)};
  if (is_diff) json.push_back(static_cast<int>(cast.change));
  return json;
}

// What ranks send each other in the finished program.
SortedJson CollectivesJson(const ModelFacts& facts, Texts* texts) {
  SortedJson collectives = SortedJson::array();
  const Entry* entry = facts.model->program->FindEntry(facts.entry);
  if (entry == nullptr) return collectives;
  const Block& block = entry->block();
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (!passes::IsCollective(op)) continue;
    int64_t bytes = 0;
    std::vector<std::string> members;
    for (const ValueId value : op.inputs.all()) {
      const TensorType& type = block.type(value);
      bytes += type.Elements().coefficient() * SizeOf(type.dtype);
      members.emplace_back(block.name(value));
    }
    std::string what(op.schema->name());
    if (op.schema->FindAttr("of") >= 0) {
      absl::StrAppend(&what, " of ", AttrAs<std::string>(op, "of"));
    }
    collectives.push_back({std::string(block.name(op)), texts->Of(what),
                           texts->Of(std::string(Name(block.dtype(op.in(0))))),
                           bytes, members});
  }
  return collectives;
}

SortedJson JsonOf(const GraphData& graph, const Types& types,
                  const ModelFacts& facts, bool is_diff) {
  Texts texts;
  std::map<std::string, std::string> rules;
  SortedJson ops = SortedJson::array(), casts = SortedJson::array();
  for (const GraphOp& op : graph.ops) {
    rules[op.row->reason()] = std::string(RuleOf(op.row->reason()));
    ops.push_back(OpJson(op, types, is_diff, &texts));
  }
  for (const GraphCast& cast : graph.casts) {
    casts.push_back(CastJson(cast, facts.samples, is_diff, &texts));
  }
  SortedJson collectives = CollectivesJson(facts, &texts);
  return {{"model", facts.model->source.model->name()},
          {"file", facts.model->source.file},
          {"ops", std::move(ops)},
          {"casts", std::move(casts)},
          {"collectives", std::move(collectives)},
          {"strings", texts.all()},
          {"rules", rules}};
}

}  // namespace

GraphData GraphOf(const ModelFacts& facts) {
  GraphData graph;
  absl::flat_hash_map<std::string, int> makers, casts, names;
  for (const proto::CastRow& cast : facts.model->casts.all()) {
    casts[cast.name()] = static_cast<int>(graph.casts.size());
    graph.casts.push_back({&cast});
  }
  for (const proto::OpRow& op : facts.model->ops.all()) {
    const int index = static_cast<int>(graph.ops.size());
    names.try_emplace(op.name(), index);
    for (const proto::SlotNames& slot : op.output()) {
      for (const std::string& value : slot.value()) makers[value] = index;
    }
    graph.ops.push_back({&op, -1, {}});
  }
  for (GraphOp& op : graph.ops) {
    if (op.row->role() == "backward" && op.row->because_of_size() > 0) {
      const auto it = names.find(op.row->because_of(0));
      if (it != names.end()) op.of = it->second;
    }
    for (const proto::SlotNames& slot : op.row->input()) {
      for (const std::string& value : slot.value()) {
        GraphEdge edge;
        edge.value = value;
        const auto cast = casts.find(value);
        if (cast != casts.end()) {
          edge.cast = cast->second;
          edge.value = graph.casts[edge.cast].row->value();
        }
        const auto maker = makers.find(edge.value);
        if (maker != makers.end()) edge.from = maker->second;
        op.inputs.push_back(std::move(edge));
      }
    }
  }
  return graph;
}

absl::StatusOr<std::string> GraphDot(const ModelFacts& facts,
                                     const std::string& scope) {
  const GraphData graph = GraphOf(facts);
  std::vector<bool> shown;
  bool any = false;
  for (const GraphOp& op : graph.ops) {
    shown.push_back(scope.empty() || GlobMatch(scope, op.row->name()));
    any |= shown.back();
  }
  if (!any) {
    std::vector<std::string> names;
    for (const GraphOp& op : graph.ops) names.push_back(op.row->name());
    return UsageError("--scope ", scope, ": no op has such a name",
                      NearestHint(scope, names));
  }
  std::string dot = absl::StrCat(
      "digraph ", DotQuoted(facts.model->source.model->name()),
      " {\nnode [shape=box style=filled fontname=\"sans-serif\"]\n",
      "edge [fontname=\"sans-serif\" fontsize=10]\n");
  std::vector<std::string> open;
  int clusters = 0;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (!shown[i]) continue;
    const proto::OpRow& row = *graph.ops[i].row;
    MoveToScope(row.name(), &open, &clusters, &dot);
    absl::StrAppend(
        &dot, "n", i, " [label=",
        DotQuoted(absl::StrCat(row.name(), "\n", row.type(), ", ",
                               row.precision(), "\n", row.reason())),
        " fillcolor=\"", FillOf(row.precision()), "\"",
        row.role() == "forward" ? "" : " color=\"#8888aa\"", "]\n");
  }
  MoveToScope("", &open, &clusters, &dot);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (!shown[i]) continue;
    for (const GraphEdge& edge : graph.ops[i].inputs) {
      if (edge.from >= 0 && !shown[edge.from]) continue;
      dot += EdgeDot(facts, graph, edge, static_cast<int>(i));
    }
  }
  return dot + "}\n";
}

SortedJson GraphJson(const ModelFacts& facts) {
  Types types;
  AddTypes(facts, &types);
  return JsonOf(GraphOf(facts), types, facts, /*is_diff=*/false);
}

SortedJson GraphDiffJson(const GraphData& merged, const ModelFacts& before,
                         const ModelFacts& after) {
  Types types;
  AddTypes(after, &types);
  AddTypes(before, &types);
  SortedJson json = JsonOf(merged, types, after, /*is_diff=*/true);
  json["before_file"] = before.model->source.file;
  return json;
}

}  // namespace tools
}  // namespace halftone

#include "tools/search/search_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/strategy/fields.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

void AddOps(const char* head, const std::vector<SearchedOp>& ops,
            std::string* text) {
  for (const SearchedOp& op : ops) {
    absl::StrAppend(text, "# ", head, " ", op.name, " (", op.type, ", ",
                    op.op_class, ")\n");
    head = "         ";
  }
}

Json OpsJson(const std::vector<SearchedOp>& ops) {
  Json rows = Json::array();
  for (const SearchedOp& op : ops) {
    rows.push_back({{"name", op.name},
                    {"type", op.type},
                    {"class", op.op_class},
                    {"line", op.line}});
  }
  return rows;
}

}  // namespace

std::string SearchText(const SearchAnswer& answer, const Tolerance& tolerance,
                       int runs, const Trials& trials) {
  const Metric& metric = tolerance.metric;
  std::string text = absl::StrCat(
      "# ", answer.kept.size(), " of ", answer.candidates,
      " ops must stay f32: ", metric.name, " ", metric.Text(answer.value),
      ", in f32 ", metric.Text(answer.reference), ", tolerance ",
      tolerance.most, "\n# means of ", runs, runs == 1 ? " run" : " runs",
      " with seeds of their own; ", trials.programs(), " programs, ",
      trials.runs_made(), " runs made now\n");
  AddOps("must stay", answer.kept, &text);
  AddOps("may go   ", answer.freed, &text);
  return text + StrategyText(answer.strategy);
}

std::string SearchJson(const SearchAnswer& answer, const Tolerance& tolerance,
                       int runs, const Trials& trials) {
  const Json json = {{"schema", 1},
                     {"metric", tolerance.metric.name},
                     {"tolerance", tolerance.most},
                     {"reference", answer.reference},
                     {"value", answer.value},
                     {"runs", runs},
                     {"programs", trials.programs()},
                     {"runs_made", trials.runs_made()},
                     {"candidates", answer.candidates},
                     {"must_stay_f32", OpsJson(answer.kept)},
                     {"may_go_low", OpsJson(answer.freed)},
                     {"strategy", StrategyText(answer.strategy)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tools
}  // namespace halftone

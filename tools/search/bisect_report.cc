#include "tools/search/bisect_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/shell_word.h"
#include "graph/strategy/fields.h"
#include "runtime/log/words.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;
using runtime::Count;

// "2 of 3 runs miss"; nothing where they agree.
std::string FlakyText(const Verdict& verdict) {
  return absl::StrCat("flaky: ", verdict.missing, " of ", verdict.runs,
                      " runs miss");
}

std::string ValueText(const Metric& metric, const Verdict& verdict) {
  return absl::StrCat(
      metric.name, " ", metric.Text(verdict.value),
      verdict.is_flaky() ? absl::StrCat(" (", FlakyText(verdict), ")") : "");
}

// "conv1 (conv2d, white) f16, good f32  net.pbtxt:9".
std::string OpText(const GuiltyOp& guilty, const std::string& file) {
  const SearchedOp& op = guilty.op;
  return absl::StrCat(op.name, " (", op.type, ", ", op.op_class, ") ",
                      guilty.bad, ", good ", guilty.good, "  ", file,
                      op.line > 0 ? absl::StrCat(":", op.line) : "");
}

Json VerdictJson(const Verdict& verdict) {
  return {{"value", verdict.value.has_value() ? Json(*verdict.value) : Json()},
          {"runs", verdict.runs},
          {"missing", verdict.missing}};
}

Json OpsJson(const GuiltyOps& set) {
  Json ops = Json::array();
  for (const GuiltyOp& guilty : set.ops) {
    ops.push_back({{"name", guilty.op.name},
                   {"type", guilty.op.type},
                   {"class", guilty.op.op_class},
                   {"line", guilty.op.line},
                   {"bad", guilty.bad},
                   {"good", guilty.good}});
  }
  return ops;
}

std::string Next(const BisectAnswer& answer, const BisectFacts& facts) {
  return facts.strategy_out.empty()
             ? absl::StrCat("halftone explain ", ShellWord(facts.model), " ",
                            ShellWord(answer.guilty[0].ops[0].op.name),
                            "; -o FILE keeps the strategy below")
             : absl::StrCat("halftone compile ", ShellWord(facts.model),
                            " --strategy ", ShellWord(facts.strategy_out));
}

std::string GuiltyText(const BisectAnswer& answer, const BisectFacts& facts) {
  const Metric& metric = facts.tolerance.metric;
  std::string text;
  for (const GuiltyOps& set : answer.guilty) {
    const char* head = "guilty  ";
    for (const GuiltyOp& op : set.ops) {
      absl::StrAppend(&text, head, OpText(op, facts.file), "\n");
      head = "        ";
    }
    absl::StrAppend(
        &text, "        ", set.ops.size() == 1 ? "alone" : "together",
        " as in the bad program: ", ValueText(metric, set.verdict), "\n");
  }
  return text;
}

}  // namespace

std::string BisectText(const BisectAnswer& answer, const BisectFacts& facts,
                       const Trials& trials) {
  const Metric& metric = facts.tolerance.metric;
  std::string text = absl::StrCat(
      "bisect  ", facts.bad, ": ", ValueText(metric, answer.bad), "; good ",
      facts.good, ": ", metric.name, " ", metric.Text(answer.good),
      ", tolerance ", facts.tolerance.most, "\n");
  absl::StrAppend(&text, "tried   ", Count(trials.programs(), "program"), ", ",
                  Count(trials.runs(), "run"), " (", trials.runs_made(),
                  " made now) for ", answer.candidates,
                  " ops whose precision differs\n", GuiltyText(answer, facts));
  for (const FlakyVerdict& flaky : answer.flaky) {
    absl::StrAppend(&text, "flaky   ", flaky.what, ": ",
                    ValueText(metric, flaky.verdict), "\n");
  }
  absl::StrAppend(&text, "cured   ", ValueText(metric, answer.cure),
                  " with the strategy below\n", "next    ", Next(answer, facts),
                  "\n");
  // As comments.
  text = "# " + absl::StrReplaceAll(text, {{"\n", "\n# "}});
  text.resize(text.size() - 2);
  return text + StrategyText(answer.strategy);
}

std::string BisectJson(const BisectAnswer& answer, const BisectFacts& facts,
                       const Trials& trials) {
  Json guilty = Json::array(), flaky = Json::array();
  for (const GuiltyOps& set : answer.guilty) {
    Json row = {{"ops", OpsJson(set)}};
    row.update(VerdictJson(set.verdict));
    guilty.push_back(std::move(row));
  }
  for (const FlakyVerdict& one : answer.flaky) {
    Json row = {{"program", one.what}};
    row.update(VerdictJson(one.verdict));
    flaky.push_back(std::move(row));
  }
  return JsonText({{"schema", 1},
                   {"metric", facts.tolerance.metric.name},
                   {"tolerance", facts.tolerance.most},
                   {"file", facts.file},
                   {"good", answer.good},
                   {"bad", VerdictJson(answer.bad)},
                   {"cured", VerdictJson(answer.cure)},
                   {"candidates", answer.candidates},
                   {"programs", trials.programs()},
                   {"runs", trials.runs()},
                   {"runs_made", trials.runs_made()},
                   {"guilty", std::move(guilty)},
                   {"flaky", std::move(flaky)},
                   {"strategy", StrategyText(answer.strategy)}});
}

}  // namespace tools
}  // namespace halftone

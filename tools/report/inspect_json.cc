#include <string>
#include <vector>

#include "graph/base/error.h"
#include "passes/report.h"
#include "tools/common/json_text.h"
#include "tools/report/inspect_report.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

template <typename Slots>
Json SlotsJson(const Slots& slots) {
  Json json = Json::object();
  for (const proto::SlotNames& slot : slots) {
    json[slot.slot()] =
        std::vector<std::string>(slot.value().begin(), slot.value().end());
  }
  return json;
}

template <typename Strings>
std::vector<std::string> List(const Strings& strings) {
  return {strings.begin(), strings.end()};
}

}  // namespace

Json OpJson(const proto::OpRow& op) {
  Json json = {{"name", op.name()},
               {"type", op.type()},
               {"role", op.role()},
               {"inputs", SlotsJson(op.input())},
               {"outputs", SlotsJson(op.output())},
               {"precision", op.precision()},
               {"reason", op.reason()},
               {"because_of", List(op.because_of())},
               {"class", op.op_class()}};
  if (op.has_line()) json["line"] = op.line();
  return json;
}

Json CastJson(const proto::CastRow& cast, int64_t samples) {
  // Unlike the value that it makes, the op has a name that no other op has.
  return {{"name", cast.has_op() ? cast.op() : cast.name()},
          {"value", cast.value()},
          {"output", cast.name()},
          {"from", cast.from()},
          {"to", cast.to()},
          {"for", List(cast.for_op())},
          {"role", cast.role()},
          {"reason", cast.reason()},
          {"because_of", List(cast.because_of())},
          {"bytes_per_step", passes::BytesPerStep(cast, samples)},
          {"fate", cast.fate()},
          {"into", List(cast.into())}};
}

Json BucketsJson(const proto::CompileReport& report) {
  Json json = Json::array();
  for (const proto::BucketRow& bucket : report.bucket()) {
    json.push_back({{"dtype", bucket.dtype()},
                    {"bytes", bucket.bytes()},
                    {"members", List(bucket.member())}});
  }
  return json;
}

Json TotalsJson(const ModelFacts& facts) {
  Json json = {{"ops", facts.ops},
               {"low_ops", facts.low_ops},
               {"casts_down", facts.down},
               {"casts_up", facts.up},
               {"standalone", facts.standalone},
               {"folded", facts.folded},
               {"cell", facts.cell},
               {"cast_bytes_per_step", facts.cast_bytes},
               {"samples", facts.samples},
               {"state_bytes", facts.state.total()}};
  if (facts.peak_bytes >= 0) json["peak_bytes"] = facts.peak_bytes;
  return json;
}

absl::StatusOr<std::string> InspectJson(const ModelFacts& facts,
                                        const std::string& scope) {
  const CompiledModel& model = *facts.model;
  Json json = {{"schema", 1},
               {"model", model.source.model->name()},
               {"entry", facts.entry},
               {"level", model.strategy.amp().level()},
               {"dtype", facts.low},
               {"precision_rule", model.strategy.amp().precision_rule()},
               {"ops", Json::array()},
               {"casts", Json::array()},
               {"params", Json::array()},
               {"buckets", BucketsJson(model.report)}};
  for (const proto::OpRow& op : model.ops.all()) {
    if (InScope(op, scope)) json["ops"].push_back(OpJson(op));
  }
  for (const proto::CastRow& cast : model.casts.all()) {
    if (!InScope(cast, scope)) continue;
    json["casts"].push_back(CastJson(cast, facts.samples));
  }
  // Else a backward op may be all that it matches.
  if (json["ops"].empty() && json["casts"].empty()) {
    HT_RETURN_IF_ERROR(CheckScope(facts, scope));
  }
  for (const proto::ParamRow& param : model.report.param()) {
    json["params"].push_back(
        {{"name", param.name()},
         {"dtype", param.dtype()},
         {"shape",
          std::vector<int64_t>(param.shape().begin(), param.shape().end())},
         {"low_cell", param.has_low_cell() ? Json(param.low_cell()) : Json()},
         {"gradient_dtype",
          param.has_gradient_dtype() ? Json(param.gradient_dtype()) : Json()}});
  }
  json["totals"] = TotalsJson(facts);
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone

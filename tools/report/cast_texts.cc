#include "tools/report/cast_texts.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/text.h"
#include "graph/ir/decision.h"
#include "passes/report.h"
#include "tools/common/model_flags.h"

namespace halftone {
namespace tools {
namespace {

std::string FlagsOf(const std::set<std::string>& types) {
  return absl::StrCat("--white ", absl::StrJoin(types, " --white "));
}

}  // namespace

std::string ReadersText(const proto::CastRow& cast) {
  if (cast.for_op_size() > 0) return absl::StrJoin(cast.for_op(), " ");
  return cast.role() == Name(Role::kForward) ? "the result" : "the update";
}

CastTexts::CastTexts(const ModelFacts& facts)
    : facts_(facts), types_(WrittenTypesOf(*facts.model)) {
  for (const proto::OpRow* op : OwnOps(*facts.model)) ops_[op->name()] = op;
  for (const proto::CastRow& cast : facts.model->casts.all()) {
    names_.insert(cast.name());
  }
}

bool CastTexts::IsGradientOfCast(const proto::CastRow& cast) const {
  return cast.role() != "forward" && cast.because_of_size() == 1 &&
         names_.count(cast.because_of(0)) > 0;
}

CastTexts::Row CastTexts::Next(const proto::CastRow& cast) {
  Row row;
  const bool of_above = IsGradientOfCast(cast) && cast.because_of(0) == above_;
  if (cast.role() == "forward") {
    row.of = ReadersText(cast);
  } else {
    row.of = absl::StrCat(
        "backward of ",
        of_above ? "the above" : absl::StrJoin(cast.because_of(), " "));
  }
  const bool taken = cast.fate() == "folded" && cast.into_size() > 0;
  row.fate = taken
                 ? absl::StrCat("folded into ", absl::StrJoin(cast.into(), " "))
                 : cast.fate();
  row.without = of_above ? "(same)" : Without(cast);
  above_ = cast.name();
  return row;
}

std::string CastTexts::Without(const proto::CastRow& cast) {
  if (IsGradientOfCast(cast)) return absl::StrCat("as ", cast.because_of(0));
  if (cast.role() != "forward" || cast.to() != "f32") return "-";
  std::set<std::string> types;
  for (const std::string& reader : cast.for_op()) {
    const auto op = ops_.find(reader);
    if (op == ops_.end()) continue;
    const std::string& reason = op->second->reason();
    const auto type = types_.find(reader);
    if (reason == "BLACK_LIST" && type != types_.end()) {
      types.insert(type->second);
    }
    if (reason == "FP32_SCOPE") return "leave it out of amp.fp32_scopes";
    if (reason == "USER_BLACK") return "leave it off your black list";
  }
  if (types.empty()) return "-";
  auto effect = effects_.find(types);
  if (effect == effects_.end()) {
    effect = effects_.emplace(types, EffectOf(types)).first;
  }
  const auto stays = effect->second.stay.find(cast.name());
  if (stays == effect->second.stay.end()) return effect->second.said;
  return absl::StrCat(FlagsOf(types), ": stays, for ", stays->second);
}

CastTexts::Effect CastTexts::EffectOf(
    const std::set<std::string>& types) const {
  const std::string flags = FlagsOf(types);
  if (facts_.ops > kMostTried) return {flags, {}};
  std::vector<passes::Override> overrides;
  for (const std::string& type : types) {
    overrides.push_back({"amp.custom_white_list", type, "--white"});
  }
  const auto other =
      RecompileWith(*facts_.model, overrides, /*taps=*/{}, /*threads=*/0,
                    /*report_entry=*/facts_.entry);
  // No low kernel, or a conflict of lists: what the flags say when they are
  // given is more than fits here.
  if (!other.ok()) return {"-", {}};
  Effect effect;
  std::vector<std::string> values;
  int64_t bytes = 0;
  for (const proto::CastRow& cast : other->casts.all()) {
    if (cast.role() != "forward") continue;
    if (names_.count(cast.name()) > 0) {
      effect.stay[cast.name()] = ReadersText(cast);
      continue;
    }
    values.push_back(cast.value());
    bytes += passes::BytesPerStep(cast, facts_.samples);
  }
  effect.said = absl::StrCat(flags, ": gone");
  if (values.empty()) return effect;
  const size_t more = values.size() > 3 ? values.size() - 2 : 0;
  if (more > 0) values.resize(2);
  effect.said =
      absl::StrCat(flags, ": moves to ", absl::StrJoin(values, " "),
                   more > 0 ? absl::StrCat(" and ", more, " more") : "", ", ",
                   WithCommas(bytes), " B");
  return effect;
}

}  // namespace tools
}  // namespace halftone

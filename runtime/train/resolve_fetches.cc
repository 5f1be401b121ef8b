#include "runtime/train/resolve_fetches.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/parameter_updates.h"
#include "runtime/log/words.h"

namespace halftone {
namespace runtime {
namespace {

class Resolver {
 public:
  Resolver(const Program& program, const Program* unlowered)
      : train_(program.FindEntry(kTrainEntry)),
        unlowered_(unlowered == nullptr ? nullptr
                                        : unlowered->FindEntry(kTrainEntry)) {
    if (train_ == nullptr) return;
    // Where each part of the loss has a scale, what is reduced has none.
    const std::string part = absl::StrCat(kNotFinitePrefix, 0);
    one_scale_ = !train_->FindResult(part).valid();
    for (ParameterUpdate& update : ParameterUpdates(train_->block())) {
      if (!update.parameter.valid()) continue;
      const std::string& parameter = program.cell(update.parameter).name;
      std::string name = GradientName(parameter);
      if (!updates_.try_emplace(name, std::move(update)).second) continue;
      gradients_.push_back(std::move(name));
    }
  }

  absl::Status Add(const Fetch& asked, std::vector<Fetch>* fetches) const {
    if (train_ == nullptr || !IsGlob(asked.value)) return Take(asked, fetches);
    std::vector<std::string> names = Matching(asked.value, gradients_);
    if (names.empty()) names = Matching(asked.value, ValuesFor(asked.kind));
    if (names.empty()) {
      return UsageError(
          "--fetch ", asked.text, ": no gradient of a parameter ",
          "and no value of training ",
          asked.kind == Fetch::Kind::kExponents ? "in f32, f16 or bf16 " : "",
          "has a name like that (halftone inspect MODEL --dump "
          "has all); gradients are ",
          JoinFew(gradients_, 3));
    }
    const std::string kind = asked.text.substr(asked.value.size());
    for (std::string& name : names) {
      Fetch fetch = asked;
      fetch.text = name + kind;
      fetch.value = std::move(name);
      HT_RETURN_IF_ERROR(Take(std::move(fetch), fetches));
    }
    return absl::OkStatus();
  }

 private:
  bool IsGlob(const std::string& name) const {
    return HasGlob({name}) && !train_->block().FindValue(name).valid();
  }
  static std::vector<std::string> Matching(
      const std::string& glob, const std::vector<std::string>& names) {
    std::vector<std::string> matching;
    for (const std::string& name : names) {
      if (GlobMatch(glob, name)) matching.push_back(name);
    }
    return matching;
  }

  // In the order of the program, each once.
  std::vector<std::string> ValuesFor(Fetch::Kind kind) const {
    std::vector<std::string> names;
    const Block& block = (unlowered_ != nullptr ? unlowered_ : train_)->block();
    for (int i = 0; i < block.value_limit(); ++i) {
      const Value& value = block.value(ValueId(i));
      if (value.erased || !Takes(kind, block.dtype(value.id))) continue;
      names.emplace_back(block.name(value.id));
    }
    return names;
  }

  absl::Status Take(Fetch fetch, std::vector<Fetch>* fetches) const {
    fetch.kept = fetch.value;
    if (train_ != nullptr) HT_RETURN_IF_ERROR(FindKept(&fetch));
    fetches->push_back(std::move(fetch));
    return absl::OkStatus();
  }

  absl::Status FindKept(Fetch* fetch) const {
    const Block& block = train_->block();
    ValueId value = block.FindValue(fetch->value);
    const auto update = updates_.find(fetch->value);
    if (update != updates_.end()) {
      const GradientOrigin& origin = update->second.origin;
      const bool as_reduced =
          fetch->kind == Fetch::Kind::kExponents && origin.reduced.valid();
      value = as_reduced ? origin.reduced : update->second.gradient;
      fetch->kept = std::string(block.name(value));
      fetch->unscale = !as_reduced && update->second.unscales;
      fetch->scaled = as_reduced ? one_scale_ : update->second.unscales;
    } else if (value.valid()) {
      const OpId op = block.value(value).op();
      fetch->scaled =
          one_scale_ && op.valid() && block.op(op).role == Role::kBackward;
    }
    if (value.valid() && !Takes(fetch->kind, block.dtype(value))) {
      return UsageError("--fetch ", fetch->text, ": the value is ",
                        Name(block.dtype(value)),
                        "; exponents are those of f32, f16 and bf16");
    }
    return absl::OkStatus();
  }

  const Entry* train_;
  const Entry* unlowered_;
  bool one_scale_ = true;
  absl::flat_hash_map<std::string, ParameterUpdate> updates_;  // by gradient
  std::vector<std::string> gradients_;                         // in order
};

}  // namespace

bool HasGlob(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find_first_of("*?") != std::string::npos;
  });
}

absl::StatusOr<std::vector<Fetch>> ResolveFetches(
    const Program& program, const std::vector<std::string>& texts,
    const Program* unlowered) {
  HT_ASSIGN_OR_RETURN(const std::vector<Fetch> asked, ParseFetches(texts));
  std::vector<Fetch> fetches;
  if (asked.empty()) return fetches;
  const Resolver resolver(program, unlowered);
  for (const Fetch& fetch : asked) {
    HT_RETURN_IF_ERROR(resolver.Add(fetch, &fetches));
  }
  // What several globs match is shown once.
  absl::flat_hash_set<std::string> seen;
  fetches.erase(std::remove_if(fetches.begin(), fetches.end(),
                               [&seen](const Fetch& fetch) {
                                 return !seen.insert(fetch.text).second;
                               }),
                fetches.end());
  return fetches;
}

absl::StatusOr<KeptValues> ValuesToKeep(const Program& program,
                                        const std::vector<std::string>& texts) {
  HT_ASSIGN_OR_RETURN(const std::vector<Fetch> fetches,
                      ResolveFetches(program, texts));
  const Entry* train = program.FindEntry(kTrainEntry);
  KeptValues values;
  if (train == nullptr) return values;
  const Block& block = train->block();
  if (block.FindValue(kSquaredNorm).valid()) {
    values.always.push_back(kSquaredNorm);
  }
  absl::flat_hash_set<std::string> seen(values.always.begin(),
                                        values.always.end());
  const auto add = [&](const std::string& name) {
    // Of the entry's results the loop reads scalars itself, in each step.
    const ValueId result = train->FindResult(name);
    if (result.valid() && block.type(result).dims.empty()) return;
    if (seen.insert(name).second) values.fetched.push_back(name);
  };
  for (const Fetch& fetch : fetches) {
    add(fetch.kept);
    if (fetch.unscale) add(kInvScale);
  }
  return values;
}

}  // namespace runtime
}  // namespace halftone

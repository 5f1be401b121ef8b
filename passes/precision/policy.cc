#include "passes/precision/policy.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {
namespace {

constexpr absl::string_view kBlackVars = "amp.custom_black_varnames";
constexpr absl::string_view kWhiteNames = "amp.custom_white_opnames";
constexpr absl::string_view kBlackNames = "amp.custom_black_opnames";
constexpr absl::string_view kScopes = "amp.fp32_scopes";
constexpr absl::string_view kWhiteOps = "amp.custom_white_list";

absl::Status NoMatch(const Options& options, absl::string_view path, int member,
                     absl::string_view what, absl::string_view verb,
                     const std::string& glob,
                     const std::vector<std::string>& names) {
  const std::string hint = NearestHint(glob, names);
  return FieldError(
      options, path,
      absl::StrCat("no ", what, " matches \"", glob, "\"",
                   hint.empty()
                       ? absl::StrCat("; halftone ", verb, " lists them")
                       : hint),
      member);
}

// Who has the glob for a name, with a * in it, is meant alone.
bool IsMeant(absl::string_view name, absl::string_view glob, bool is_name) {
  return is_name ? name == glob : GlobMatch(glob, name);
}

}  // namespace

PrecisionPolicy::PrecisionPolicy(const Options& options,
                                 const KernelSet& kernels)
    : options_(options),
      level_(LevelOf(options.strategy.amp())),
      low_(LowOf(options.strategy.amp())),
      rule_(level_ == Level::kO1 ? RuleOf(options.strategy.amp())
                                 : PrecisionRule::kAllLow),
      kernels_(kernels),
      classes_(options) {
  const proto::Amp& amp = options.strategy.amp();
  for (const std::string& op : amp.custom_white_list()) {
    types_[Ops().Find(op)] = Choice::kWhite;
  }
  for (const std::string& op : amp.custom_black_list()) {
    types_[Ops().Find(op)] = Choice::kBlack;
  }
}

absl::Status PrecisionPolicy::MatchNames(const Block& block) {
  ErrorList errors;
  MatchVariables(block, &errors);
  const proto::Amp& amp = options_.strategy.amp();
  MatchOps(block, kWhiteNames, amp.custom_white_opnames(), Choice::kWhite,
           &errors);
  MatchOps(block, kBlackNames, amp.custom_black_opnames(), Choice::kBlack,
           &errors);
  // Last: what a black name matches, too, is in the scope.
  MatchOps(block, kScopes, amp.fp32_scopes(), Choice::kScope, &errors);
  return errors.ToStatus();
}

void PrecisionPolicy::MatchVariables(const Block& block, ErrorList* errors) {
  int member = -1;
  for (const std::string& glob :
       options_.strategy.amp().custom_black_varnames()) {
    ++member;
    black_variables_.resize(block.value_limit());
    bool matched = false;
    std::vector<std::string> names;
    const bool is_name = block.FindValue(glob).valid();
    for (int i = 0; i < block.value_limit(); ++i) {
      const Value& value = block.value(ValueId(i));
      if (value.erased || !IsMeant(block.name(value.id), glob, is_name)) {
        continue;
      }
      black_variables_[i] = true;
      matched = true;
    }
    if (matched) continue;
    for (int i = 0; i < block.value_limit(); ++i) {
      names.emplace_back(block.name(ValueId(i)));
    }
    errors->Add(NoMatch(options_, kBlackVars, member, "value",
                        "inspect MODEL --json", glob, names));
  }
}

void PrecisionPolicy::MatchOps(
    const Block& block, absl::string_view path,
    const google::protobuf::RepeatedPtrField<std::string>& globs, Choice choice,
    ErrorList* errors) {
  if (globs.empty()) return;
  names_.resize(block.op_limit(), Choice::kNone);
  const std::vector<OpId> ops = block.ops();
  int member = -1;
  for (const std::string& glob : globs) {
    ++member;
    bool matched = false;
    const bool is_name = block.FindOp(glob).valid();
    for (OpId id : ops) {
      const absl::string_view name = block.name(block.op(id));
      if (!IsMeant(name, glob, is_name)) continue;
      Choice& known = names_[id.index()];
      if (known == Choice::kWhite && choice != Choice::kWhite) {
        errors->Add(
            FieldError(options_, path,
                       absl::StrCat("\"", glob, "\" matches ", name,
                                    ", which custom_white_opnames matches, "
                                    "too; narrow one of them"),
                       member));
        return;
      }
      known = choice;
      matched = true;
    }
    if (matched || choice == Choice::kScope) continue;  // a note says so
    std::vector<std::string> names;
    for (OpId id : ops) names.emplace_back(block.name(block.op(id)));
    errors->Add(NoMatch(options_, path, member, "op", "inspect MODEL --all",
                        glob, names));
  }
}

PrecisionPolicy::Choice PrecisionPolicy::UserChoice(const Op& op) const {
  if (!names_.empty() && names_[op.id.index()] != Choice::kNone) {
    return names_[op.id.index()];
  }
  if (types_.empty()) return Choice::kNone;
  const auto it = types_.find(op.schema);
  return it == types_.end() ? Choice::kNone : it->second;
}

PolicyDecision PrecisionPolicy::Of(const Op& op, bool has_float_input) const {
  PolicyDecision decided;
  decided.kind = PolicyDecision::Kind::kF32;
  decided.amp_class = classes_.Of(op);
  const Choice choice = UserChoice(op);
  if (choice == Choice::kScope) {
    decided.reason = Reason::kFp32Scope;
    return decided;
  }
  if (!black_variables_.empty()) {
    for (const absl::Span<const ValueId> values :
         {op.inputs.all(), op.outputs.all()}) {
      for (ValueId value : values) {
        if (!black_variables_[value.index()]) continue;
        decided.reason = Reason::kBlackVarname;
        return decided;
      }
    }
  }
  if (choice == Choice::kBlack) {
    decided.reason = Reason::kUserBlack;
  } else if (choice == Choice::kWhite && level_ != Level::kO0) {
    decided.kind = PolicyDecision::Kind::kLow;
    decided.reason = Reason::kUserWhite;
  } else if (!has_float_input) {
    decided.reason = Reason::kNoFloatInput;
  } else {
    return ByClass(op);
  }
  return decided;
}

PolicyDecision PrecisionPolicy::ByClass(const Op& op) const {
  const bool all_gray_low = level_ == Level::kO2 || level_ == Level::kO3;
  const AmpClass amp_class = classes_.Of(op);
  if (level_ == Level::kO0) {
    return {PolicyDecision::Kind::kF32, Reason::kLevel, amp_class};
  }
  switch (amp_class) {
    case AmpClass::kWhite:
      return {PolicyDecision::Kind::kLow, Reason::kWhiteList, amp_class};
    case AmpClass::kBlack: {
      // Whoever writes out that unlisted ops are black means it.
      const bool unlisted = classes_.Unlisted(op);
      const bool holds = options_.op_lists.has_unlisted() && unlisted;
      if (level_ == Level::kO3 && !holds) {
        return {PolicyDecision::Kind::kLow, Reason::kLevel, amp_class};
      }
      return {PolicyDecision::Kind::kF32,
              unlisted ? Reason::kUnlisted : Reason::kBlackList, amp_class};
    }
    case AmpClass::kGray:
      if (!all_gray_low) break;
      return {PolicyDecision::Kind::kLow, Reason::kLevel, amp_class};
    case AmpClass::kClear:
      break;
  }
  return {PolicyDecision::Kind::kFollows, Reason::kNone, amp_class};
}

bool PrecisionPolicy::HasLowKernel(const Op& op) {
  const auto [it, fresh] = low_kernels_.try_emplace(op.schema, true);
  if (fresh) {
    // An op whose lead type is none of ours is legality's matter.
    const auto vars = op.schema->type_vars();
    const bool lead = !vars.empty() &&
                      std::find(vars[0].allowed.begin(), vars[0].allowed.end(),
                                low()) != vars[0].allowed.end();
    it->second = !lead || op.schema->split_only() ||
                 kernels_.HasPrecision(op.schema->name(), low());
  }
  return it->second;
}

absl::Status PrecisionPolicy::NoKernelError(const Block& block,
                                            const Op& op) const {
  const bool by_name =
      !names_.empty() && names_[op.id.index()] == Choice::kWhite;
  return FieldError(
      options_, by_name ? kWhiteNames : kWhiteOps,
      absl::StrCat(block.name(op), " (", op.schema->name(),
                   "): ", kernels_.target().name, " has no ", Name(low()),
                   " kernel for this op; leave it out of the list"));
}

}  // namespace passes
}  // namespace halftone

#include "graph/strategy/fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/error_list.h"
#include "graph/base/text.h"
#include "graph/strategy/interval.h"

namespace halftone {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Kind = StrategyField::Kind;

bool IsMessage(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}
bool IsBool(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
}
bool IsWhole(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
}
bool IsNumber(const FieldDescriptor& field) {
  return IsWhole(field) || field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

// Of the types that strategies use.
std::string DefaultText(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return field.default_value_bool() ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(field.default_value_int64());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ExactDouble(field.default_value_double());
    default:
      return field.default_value_string();
  }
}

// Lists the fields of a message and of those below it, with what they leave
// open.
class Reader {
 public:
  // `part` is what holds them, if anything does.
  void Read(const Descriptor& message, const StrategyField* part) {
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& descriptor = *message.field(i);
      StrategyField field;
      field.descriptor = &descriptor;
      field.facts = &FactsOf(descriptor);
      field.path = descriptor.name();
      if (part != nullptr) {
        field.path = absl::StrCat(part->path, ".", descriptor.name());
        field.leaves_graph_alone = part->leaves_graph_alone;
        field.agrees_on_all_ranks = part->agrees_on_all_ranks;
      }
      if (field.facts->has_leaves_graph_alone()) {
        field.leaves_graph_alone = field.facts->leaves_graph_alone();
      }
      if (field.facts->has_agrees_on_all_ranks()) {
        field.agrees_on_all_ranks = field.facts->agrees_on_all_ranks();
      }
      const bool in_list = part != nullptr && part->kind != Kind::kPart;
      field.kind = in_list ? Kind::kMember
                   : IsMessage(descriptor) && !descriptor.is_repeated()
                       ? Kind::kPart
                       : Kind::kField;
      Check(field);
      fields_.push_back(field);
      if (IsMessage(descriptor)) Read(*descriptor.message_type(), &field);
    }
  }

  absl::StatusOr<std::vector<StrategyField>> Result() {
    HT_RETURN_IF_ERROR(errors_.ToStatus());
    return std::move(fields_);
  }

 private:
  void Expect(bool holds, const StrategyField& field,
              absl::string_view otherwise) {
    if (holds) return;
    errors_.Add(CompilerBug(field.descriptor->file()->name(), ": ", field.path,
                            ": ", otherwise));
  }

  void Check(const StrategyField& field) {
    const proto::FieldFacts& facts = *field.facts;
    const FieldDescriptor& d = *field.descriptor;
    Expect(!facts.doc().empty(), field, "has no doc");
    Expect(field.leaves_graph_alone || field.agrees_on_all_ranks, field,
           "is part of the program, which all ranks share");
    CheckFlag(field);
    if (IsMessage(d)) return;
    const bool text = d.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    if (!text && !IsNumber(d) && !IsBool(d)) {
      Expect(false, field,
             "is of no type of strategies: bool, int64, double, string");
      return;
    }
    Expect(!IsNumber(d) || ParseInterval(facts.range()).has_value(), field,
           absl::StrCat("has no range: expected one as \"[0, inf)\", found \"",
                        facts.range(), "\""));
    Expect(!text || facts.word_size() > 0 || !facts.takes().empty(), field,
           "has neither words nor what it takes");
    if (IsNumber(d)) CheckTakes(field);
    CheckDefaults(field);
  }

  // A number beyond an end that the text leaves out would seem to be taken.
  void CheckTakes(const StrategyField& field) {
    const auto range = ParseInterval(field.facts->range());
    if (!field.facts->has_takes() || !range.has_value()) return;
    std::set<double> named;
    for (const absl::string_view word :
         absl::StrSplit(field.facts->takes(), absl::ByAnyChar(" ,()"))) {
      double number = 0;
      if (absl::SimpleAtod(word, &number)) named.insert(number);
    }
    for (const double end : {range->low, range->high}) {
      Expect(std::isinf(end) || named.count(end) > 0, field,
             absl::StrCat("takes \"", field.facts->takes(),
                          "\", which leaves out ", ExactDouble(end),
                          ", an end of its range"));
    }
  }

  void CheckDefaults(const StrategyField& field) {
    const proto::FieldFacts& facts = *field.facts;
    const FieldDescriptor& d = *field.descriptor;
    Expect(d.is_repeated() || d.has_default_value() || facts.has_unset() ||
               facts.bundle_size() > 0 || facts.chosen() || facts.required(),
           field, "has no default, and says not what holds without");
    const auto taken = [&](const std::string& value) {
      const std::string refused = Refusal(d, value);
      Expect(refused.empty(), field, absl::StrCat("its default: ", refused));
    };
    if (d.has_default_value()) taken(DefaultText(d));
    for (const proto::BundleDefault& bundle : facts.bundle()) {
      taken(bundle.value());
    }
  }

  void CheckFlag(const StrategyField& field) {
    const proto::Flag& flag = field.facts->flag();
    if (flag.name().empty()) return;
    Expect(flags_.insert(absl::StrCat(flag.name(), " ", flag.word())).second,
           field, absl::StrCat("another field has the flag ", flag.name()));
    if (flag.has_word()) {
      const std::string refused = Refusal(*field.descriptor, flag.value());
      Expect(refused.empty(), field, absl::StrCat("its flag: ", refused));
    }
  }

  std::vector<StrategyField> fields_;
  std::set<std::string> flags_;
  ErrorList errors_;
};

}  // namespace

const proto::FieldFacts& FactsOf(const FieldDescriptor& field) {
  return field.options().GetExtension(proto::field);
}

absl::StatusOr<std::vector<StrategyField>> ReadFields(
    const Descriptor& message) {
  Reader reader;
  reader.Read(message, nullptr);
  return reader.Result();
}

const std::vector<StrategyField>& StrategyFields() {
  static const auto& fields = *new absl::StatusOr<std::vector<StrategyField>>(
      ReadFields(*proto::Strategy::descriptor()));
  HT_CHECK(fields.ok(), std::string(fields.status().message()).c_str());
  return *fields;
}

const StrategyField* FindStrategyField(absl::string_view path) {
  const std::vector<StrategyField>& fields = StrategyFields();
  const auto it = std::find_if(
      fields.begin(), fields.end(),
      [path](const StrategyField& field) { return field.path == path; });
  return it == fields.end() ? nullptr : &*it;
}

std::string TakesText(const FieldDescriptor& field) {
  const proto::FieldFacts& facts = FactsOf(field);
  if (facts.has_takes()) return facts.takes();
  if (IsBool(field)) return facts.chosen() ? "true" : "true or false";
  if (IsNumber(field)) {
    const std::optional<Interval> range = ParseInterval(facts.range());
    return range.has_value() ? range->Text(IsWhole(field)) : "a number";
  }
  std::string text;
  for (int i = 0; i < facts.word_size(); ++i) {
    const bool last = i + 1 == facts.word_size();
    absl::StrAppend(&text, i == 0 ? "" : last ? " or " : ", ", facts.word(i));
  }
  return text;
}

std::string ValueText(const Message& message, const FieldDescriptor& field,
                      int member) {
  const Reflection& r = *message.GetReflection();
  const bool in_list = member >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: {
      const bool value = in_list ? r.GetRepeatedBool(message, &field, member)
                                 : r.GetBool(message, &field);
      return value ? "true" : "false";
    }
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(in_list ? r.GetRepeatedInt64(message, &field, member)
                                  : r.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ExactDouble(in_list ? r.GetRepeatedDouble(message, &field, member)
                                 : r.GetDouble(message, &field));
    default:
      return in_list ? r.GetRepeatedString(message, &field, member)
                     : r.GetString(message, &field);
  }
}

std::string ValueAt(const Message& message, absl::string_view path) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(path, absl::MaxSplits('.', 1));
  const FieldDescriptor* field =
      message.GetDescriptor()->FindFieldByName(parts.first);
  if (field == nullptr) return "";
  const Reflection& reflection = *message.GetReflection();
  if (field->is_repeated()) {
    std::vector<std::string> members;
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      members.push_back(
          IsMessage(*field)
              ? absl::StrCat("{ ",
                             reflection.GetRepeatedMessage(message, field, i)
                                 .ShortDebugString(),
                             " }")
              : ValueText(message, *field, i));
    }
    return absl::StrJoin(members, " ");
  }
  if (IsMessage(*field)) {
    return ValueAt(reflection.GetMessage(message, field), parts.second);
  }
  if (!reflection.HasField(message, field) && !field->has_default_value()) {
    return "";
  }
  return ValueText(message, *field);
}

std::string StrategyText(const proto::Strategy& strategy) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(strategy, &text);
  return text;
}

namespace {

// What a number of a range that is open would have to be, too; empty: it is.
// Counts are multiplied with others, in 64 bits; anything else is computed with
// in f32.
std::string UnheldText(const Interval& range, double number, bool whole) {
  constexpr double kLargestCount = 1e12;
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::isinf(number)) return "";
  if (whole) {
    return std::isinf(range.high) && number > kLargestCount
               ? absl::StrFormat("at most %.0f", kLargestCount)
               : "";
  }
  if (std::abs(number) > kLargest) {
    return absl::StrCat("what f32 holds, at most ", ExactDouble(kLargest));
  }
  // An end that does not belong to it, and that f32 rounds the number to.
  for (const double end : {range.low, range.high}) {
    if (!range.Has(end) &&
        static_cast<float>(number) == static_cast<float>(end)) {
      return absl::StrCat("what is not ", ExactDouble(end), " in f32");
    }
  }
  return "";
}

}  // namespace

std::string Refusal(const FieldDescriptor& field, const std::string& value) {
  const proto::FieldFacts& facts = FactsOf(field);
  if (IsNumber(field)) {
    const std::optional<Interval> range = ParseInterval(facts.range());
    double number = 0;
    if (absl::SimpleAtod(value, &number) && range.has_value() &&
        range->Has(number)) {
      const std::string unheld = UnheldText(*range, number, IsWhole(field));
      return unheld.empty()
                 ? ""
                 : absl::StrCat("expected ", unheld, ", found ", value);
    }
    return absl::StrCat("expected ", TakesText(field), ", found ", value);
  }
  std::vector<std::string> words(facts.word().begin(), facts.word().end());
  // One of several that is not what holds need not be named.
  if (IsBool(field)) words = {"true"};
  if (IsBool(field) && !facts.chosen()) words.emplace_back("false");
  if (words.empty() ||
      std::find(words.begin(), words.end(), value) != words.end()) {
    return "";
  }
  return absl::StrCat("expected ", TakesText(field), ", found \"", value, "\"",
                      NearestHint(value, words));
}

std::optional<FieldDefault> DefaultOf(const FieldDescriptor& field,
                                      absl::Span<const std::string> bundles) {
  const proto::FieldFacts& facts = FactsOf(field);
  for (const std::string& in_force : bundles) {
    for (const proto::BundleDefault& bundle : facts.bundle()) {
      if (std::find(bundle.name().begin(), bundle.name().end(), in_force) !=
          bundle.name().end()) {
        return FieldDefault{bundle.value(), in_force};
      }
    }
  }
  if (!field.has_default_value()) return std::nullopt;
  return FieldDefault{DefaultText(field), kDefaultOrigin};
}

bool IsDerivedOrigin(absl::string_view origin) {
  if (origin == kDefaultOrigin) return true;
  for (absl::string_view head : {"level ", "dtype ", "scaler "}) {
    if (absl::ConsumePrefix(&origin, head)) return true;
  }
  return false;
}

}  // namespace halftone

#include "tests/fuzz/json_mutator.h"

#include <iterator>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace {

using Json = nlohmann::json;

// No file has it.
constexpr char kMark[] = "@hostile@";

constexpr const char* kValues[] = {"null",
                                   "true",
                                   "-1",
                                   "0",
                                   "1e300",
                                   "-1e300",
                                   "0.5",
                                   "9223372036854775807",
                                   "-9223372036854775808",
                                   "18446744073709551615",
                                   "99999999999999999999999",
                                   "9007199254740993",
                                   "2147483648",
                                   "\"\"",
                                   "\"nan\"",
                                   "\"-1\"",
                                   "\"1e300\"",
                                   "\"\\u0000\\u001b[2J\"",
                                   "[]",
                                   "{}",
                                   "[[1],{\"a\":null}]",
                                   "{\"step\":null}"};

void Collect(Json& value, std::vector<Json*>* all) {
  all->push_back(&value);
  if (!value.is_structured()) return;
  for (Json& child : value) Collect(child, all);
}

std::string Repeated(absl::string_view part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) absl::StrAppend(&text, part);
  return text;
}

std::string Nest(size_t depth, bool objects) {
  return absl::StrCat(Repeated(objects ? "{\"a\":" : "[", depth), "1",
                      Repeated(objects ? "}" : "]", depth));
}

}  // namespace

std::string MutateJson(uint64_t seed, absl::string_view text) {
  std::mt19937_64 random(seed);
  Json json = Json::parse(text.begin(), text.end());
  std::vector<Json*> values;
  Collect(json, &values);
  *values[random() % values.size()] = kMark;
  const size_t choice = random() % (std::size(kValues) + 4);
  std::string hostile;
  if (choice < std::size(kValues)) {
    hostile = kValues[choice];
  } else if (choice == std::size(kValues)) {
    hostile = absl::StrCat("\"", std::string(1 << 20, 'x'), "\"");
  } else {
    const size_t depths[] = {10, 40, 200000};
    hostile = Nest(depths[choice - std::size(kValues) - 1], random() % 2 == 0);
  }
  return absl::StrReplaceAll(json.dump(),
                             {{absl::StrCat("\"", kMark, "\""), hostile}});
}

}  // namespace halftone

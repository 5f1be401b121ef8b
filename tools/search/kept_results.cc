#include "tools/search/kept_results.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace tools {
namespace {

using SortedJson = nlohmann::json;

constexpr char kResults[] = "results.jsonl";

std::string QuestionJson(const std::map<std::string, std::string>& question) {
  SortedJson json = {{"schema", 1}};
  for (const auto& [name, value] : question) json[name] = value;
  return json.dump(1, ' ', false, SortedJson::error_handler_t::replace) + "\n";
}

absl::Status CheckSame(const Directory& directory, const std::string& file,
                       const std::string& verb,
                       const std::map<std::string, std::string>& question) {
  HT_ASSIGN_OR_RETURN(const std::string found, directory.Read(file));
  const SortedJson there =
      SortedJson::parse(found, nullptr, /*allow_exceptions=*/false);
  if (!there.is_object()) {
    return ModelError(directory.PathOf(file), ": not what a ", verb,
                      " wrote; choose another --out");
  }
  const SortedJson asked = SortedJson::parse(QuestionJson(question));
  for (const auto& [name, value] : asked.items()) {
    if (there.contains(name) && there[name] == value) continue;
    return UsageError(
        directory.path(), " holds results of a ", verb, " with another ", name,
        " (", there.contains(name) ? there[name].dump() : "none", ", now ",
        value.dump(), "); choose another --out or remove it");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KeptResults> KeptResults::Open(
    const std::string& path, const std::string& verb,
    const std::map<std::string, std::string>& question) {
  HT_ASSIGN_OR_RETURN(DirectoryLock lock, DirectoryLock::Take(path));
  HT_ASSIGN_OR_RETURN(Directory directory, Directory::Open(path));
  const std::string file = verb + ".json";
  if (directory.KindOf(file) == Directory::Kind::kNothing) {
    for (const std::string& name : directory.Names()) {
      if (name == DirectoryLock::kFile) continue;
      return UsageError(path, " holds ", name, ", which no ", verb,
                        " wrote; choose another --out");
    }
    HT_RETURN_IF_ERROR(directory.Write(file, QuestionJson(question)));
  } else {
    HT_RETURN_IF_ERROR(CheckSame(directory, file, verb, question));
  }
  KeptResults results(std::move(lock), std::move(directory));
  HT_RETURN_IF_ERROR(results.Read());
  return results;
}

// A last line that was cut off by the end of its writer is no result.
absl::Status KeptResults::Read() {
  if (directory_.KindOf(kResults) == Directory::Kind::kNothing) {
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(std::string content, directory_.Read(kResults));
  const size_t whole = content.rfind('\n') + 1;
  if (whole != content.size()) {
    content.resize(whole);
    HT_RETURN_IF_ERROR(directory_.Write(kResults, content));
  }
  int number = 0;
  for (absl::string_view line :
       absl::StrSplit(content, '\n', absl::SkipEmpty())) {
    ++number;
    const SortedJson row =
        SortedJson::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object() || !row.contains("trial") ||
        !row["trial"].is_string() || !row.contains("value") ||
        !(row["value"].is_null() || row["value"].is_number())) {
      return ModelError(directory_.PathOf(kResults), ":", number,
                        ": not the result of a trial; remove the line, and "
                        "its run is made again");
    }
    const SortedJson& value = row["value"];
    results_[row["trial"].get<std::string>()] =
        value.is_null() ? TrialValue() : TrialValue(value.get<double>());
  }
  return absl::OkStatus();
}

const TrialValue* KeptResults::Find(const std::string& trial) const {
  const auto found = results_.find(trial);
  return found == results_.end() ? nullptr : &found->second;
}

absl::Status KeptResults::Keep(const std::string& trial, TrialValue value) {
  results_[trial] = value;
  const SortedJson row = {
      {"trial", trial},
      {"value", value.has_value() ? SortedJson(*value) : SortedJson()}};
  const std::string line = row.dump() + "\n";
  if (directory_.KindOf(kResults) == Directory::Kind::kNothing) {
    return directory_.Write(kResults, line);
  }
  HT_ASSIGN_OR_RETURN(const Descriptor file, directory_.OpenToAppend(kResults));
  return WriteAndSync(file.get(), directory_.PathOf(kResults), line);
}

}  // namespace tools
}  // namespace halftone

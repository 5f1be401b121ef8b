#include "runtime/plan/tuning_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/json/json_fields.h"
#include "graph/base/json/json_reader.h"
#include "graph/base/text.h"
#include "graph/schema/op_builder.h"
#include "graph/text/text.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using Json = nlohmann::json;

// The attributes as the text form prints them, or a fusion's whole body.
std::string AttrText(const kernels::BoundOp& op) {
  if (op.op().body != nullptr) {
    return Hex64(StableHash(PrintOp(op.block(), op.op())));
  }
  std::string text;
  for (const auto& [index, value] : op.op().attrs) {
    if (index == op.schema().stream_attr()) continue;
    absl::StrAppend(&text, op.schema().attrs()[index].name, "=");
    std::visit(
        [&text](const auto& v) {
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<V, std::string>) {
            text += v;
          } else if constexpr (std::is_same_v<V, DType>) {
            absl::StrAppend(&text, Name(v));
          } else if constexpr (std::is_arithmetic_v<V>) {
            absl::StrAppend(&text, v);
          } else {
            for (const auto& item : v) absl::StrAppend(&text, item, ",");
          }
        },
        value);
    text += ' ';
  }
  return text;
}

// Schema 2 ends with the XXH64 of all bytes before it; schema 1 had none.
constexpr int kSchema = 2;

std::string Seal(absl::string_view before) {
  return absl::StrCat(",\"xxh64\":\"", Hex64(StableHash(before)), "\"}\n");
}

bool IsSealed(absl::string_view content) {
  const size_t seal = Seal("").size();
  if (content.size() < seal) return false;
  const absl::string_view before = content.substr(0, content.size() - seal);
  return content.substr(before.size()) == Seal(before);
}

std::string EntriesText(const std::map<std::string, TuningEntry>& entries) {
  std::string text = "\"entries\":[";
  const char* separator = "\n";
  for (const auto& [key, entry] : entries) {
    const Json row = {{"op", key},
                      {"candidate", entry.candidate},
                      {"workspace_bytes", entry.workspace_bytes},
                      {"deterministic", entry.deterministic}};
    absl::StrAppend(&text, separator, row.dump());
    separator = ",\n";
  }
  return text + "]";
}

absl::Status ReadRates(const Json& row, TuningTable::Rates* rates) {
  JsonFields fields(row, "expected whole rates");
  fields.Integer("memory", 1, kMaxExactInteger, &rates->memory);
  fields.Integer("low", 0, kMaxExactInteger, &rates->low);
  fields.Integer("f32", 0, kMaxExactInteger, &rates->f32);
  return fields.status();
}

}  // namespace

std::string TuningTable::KeyOf(const kernels::BoundOp& op) {
  std::string key = absl::StrCat(op.schema().name(), "|");
  for (const kernels::TensorDesc& desc : op.inputs()) {
    absl::StrAppend(&key, kernels::ToString(desc), " ");
  }
  key += "->";
  for (const kernels::TensorDesc& desc : op.outputs()) {
    absl::StrAppend(&key, " ", kernels::ToString(desc));
  }
  absl::StrAppend(&key, "|", AttrText(op), "|threads ", op.context().threads);
  return key;
}

const TuningEntry* TuningTable::Find(const std::string& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second;
}

void TuningTable::Set(const std::string& key, TuningEntry entry) {
  entries_[key] = std::move(entry);
}

std::string TuningTable::Serialize() const {
  std::string text = absl::StrCat(
      "{\"schema\":", kSchema, ",\"device\":", Json(device_description).dump());
  if (rates.memory > 0) {
    const Json row = {
        {"memory", rates.memory}, {"low", rates.low}, {"f32", rates.f32}};
    absl::StrAppend(&text, ",\"rates\":", row.dump());
  }
  absl::StrAppend(&text, ",", EntriesText(entries_));
  return text + Seal(text);
}

absl::StatusOr<TuningTable> TuningTable::Parse(absl::string_view content,
                                               absl::string_view file) {
  const auto malformed = [file](absl::string_view what) {
    return ModelError(file, ": not a tuning table: ", what,
                      "; delete it: it is made again");
  };
  const absl::StatusOr<Json> json = ParseJson(content, "expected JSON");
  if (!json.ok()) return malformed(json.status().message());
  if (!json->is_object()) return malformed("expected a JSON object");
  JsonFields fields(*json, "expected its fields");
  int64_t schema = 1;
  fields.Integer("schema", 1, kSchema, &schema);
  if (schema == kSchema && !IsSealed(content)) {
    return malformed("damaged: its checksum is another");
  }
  TuningTable table;
  if (json->contains("device")) {
    fields.Text("device", &table.device_description);
  }
  if (json->contains("rates")) {  // tables of before have none
    const absl::Status status = ReadRates((*json)["rates"], &table.rates);
    if (!status.ok()) return malformed(status.message());
  }
  for (const Json& row : fields.List("entries")) {
    JsonFields entry(row, "expected whole entries");
    std::string key;
    TuningEntry value;
    entry.Text("op", &key);
    entry.Text("candidate", &value.candidate);
    entry.Integer("workspace_bytes", 0, kMaxExactInteger,
                  &value.workspace_bytes);
    entry.Bool("deterministic", &value.deterministic);
    if (!entry.status().ok()) return malformed(entry.status().message());
    table.Set(key, std::move(value));
  }
  if (!fields.status().ok()) return malformed(fields.status().message());
  return table;
}

// Of the bytes that schema 1 had for the entries alone: checkpoints hold it.
std::string TuningTable::Hash() const {
  return Hex64(StableHash(absl::StrCat("{\"schema\":1,\"device\":\"\",",
                                       EntriesText(entries_), "}\n")));
}

}  // namespace runtime
}  // namespace halftone

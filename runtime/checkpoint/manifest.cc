#include "runtime/checkpoint/manifest.h"

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/json/json_fields.h"
#include "graph/base/json/json_reader.h"
#include "graph/base/text.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using Json = nlohmann::json;

constexpr char kState[] = "state.safetensors";
constexpr int64_t kMostRanks = 1 << 20;

void ReadNumbers(JsonFields& fields, std::map<std::string, double>* numbers) {
  for (const auto& [key, text] : fields.Object("numbers").items()) {
    double value = 0;
    if (!text.is_string() ||
        !absl::SimpleAtod(text.get_ref<const std::string&>(), &value)) {
      return fields.Fail(absl::StrCat("numbers: ", ShownName(key),
                                      ": expected a number, found ",
                                      ShownJson(text)));
    }
    (*numbers)[key] = value;
  }
}

void ReadTexts(JsonFields& fields, const char* name,
               std::map<std::string, std::string>* texts) {
  for (const auto& [key, text] : fields.Object(name).items()) {
    if (!text.is_string()) {
      return fields.Fail(absl::StrCat(name, ": ", ShownName(key),
                                      ": expected a text, found ",
                                      ShownJson(text)));
    }
    (*texts)[key] = text.get<std::string>();
  }
}

absl::Status ReadState(const Json& state, int64_t schema, StateSums* sums) {
  JsonFields fields(state, "files[0]");
  fields.Integer("bytes", 0, std::numeric_limits<int64_t>::max(), &sums->bytes);
  if (schema == 1) {
    fields.Text("xxh64", &sums->whole);
  } else {
    fields.Text("xxh64_header", &sums->header);
    ReadTexts(fields, "xxh64_tensors", &sums->tensors);
  }
  return fields.status();
}

absl::StatusOr<ManifestFile> FromJson(const Json& json) {
  ManifestFile file;
  Manifest& m = file.manifest;
  JsonFields fields(json, "not a manifest");
  int64_t schema = 0;
  fields.Integer("schema", 1, kMaxExactInteger, &schema);
  if (schema > kManifestSchema) {
    return CheckpointError("written by a newer version (schema ", schema,
                           ", expected ", kManifestSchema - 1, " or ",
                           kManifestSchema, "); use that version");
  }
  fields.Integer("step", 0, kMaxExactInteger, &m.step);
  fields.Integer("epoch", 0, kMaxExactInteger, &m.epoch);
  fields.Integer("sample", 0, kMaxExactInteger, &m.sample);
  fields.Integer("world_size", 1, kMostRanks, &m.world_size);
  fields.Text("level", &m.level);
  fields.Text("fingerprint", &m.fingerprint);
  fields.Text("state_signature", &m.state_signature);
  fields.Text("tuning_hash", &m.tuning_hash);
  fields.Integer("seed", std::numeric_limits<int64_t>::min(),
                 std::numeric_limits<int64_t>::max(), &m.seed);
  ReadNumbers(fields, &m.numbers);
  ReadTexts(fields, "texts", &m.texts);
  const Json& files = fields.List("files");
  HT_RETURN_IF_ERROR(fields.status());
  if (files.empty()) return ModelError("not a manifest: it names no file");
  HT_RETURN_IF_ERROR(ReadState(files[0], schema, &file.state));
  return file;
}

}  // namespace

std::string SerializeManifest(const ManifestFile& file) {
  const Manifest& m = file.manifest;
  Json numbers = Json::object();
  for (const auto& [key, value] : m.numbers) {
    numbers[key] = ExactDouble(value);
  }
  const Json json = {
      {"schema", kManifestSchema},
      {"step", m.step},
      {"epoch", m.epoch},
      {"sample", m.sample},
      {"world_size", m.world_size},
      {"level", m.level},
      {"fingerprint", m.fingerprint},
      {"state_signature", m.state_signature},
      {"tuning_hash", m.tuning_hash},
      {"seed", m.seed},
      {"numbers", numbers},
      {"texts", m.texts},
      {"files",
       {{{"name", kState},
         {"bytes", file.state.bytes},
         {"xxh64_header", file.state.header},
         {"xxh64_tensors", file.state.tensors}}}},
  };
  const std::string body = json.dump();
  return absl::StrCat(body, "\n", Hex64(StableHash(body)), "\n");
}

absl::StatusOr<ManifestFile> ParseManifest(absl::string_view content,
                                           const std::string& file) {
  const size_t line = content.find('\n');
  const absl::string_view body = content.substr(0, line);
  if (line == absl::string_view::npos ||
      content.substr(line + 1) != absl::StrCat(Hex64(StableHash(body)), "\n")) {
    return CheckpointError(file, ": damaged: its checksum does not fit");
  }
  const absl::StatusOr<Json> json = ParseJson(body, file);
  if (!json.ok()) return CheckpointError(json.status().message());
  absl::StatusOr<ManifestFile> manifest = FromJson(*json);
  if (!manifest.ok()) {
    return CheckpointError(file, ": ", manifest.status().message());
  }
  return manifest;
}

}  // namespace runtime
}  // namespace halftone

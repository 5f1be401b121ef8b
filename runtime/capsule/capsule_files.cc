#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/disk/directory.h"
#include "graph/base/error.h"
#include "graph/base/json/json_fields.h"
#include "graph/base/json/json_reader.h"
#include "graph/base/system/system_error.h"
#include "graph/base/text.h"
#include "runtime/capsule/capsule.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kSchema = 1;
constexpr char kManifest[] = "capsule.json";
constexpr char kModel[] = "model.htc";
constexpr char kCells[] = "cells.safetensors";
constexpr char kTuning[] = "tuning.json";
constexpr int64_t kMostRanks = 1 << 13;
constexpr int64_t kMostBytes = int64_t{1} << 40;

std::string BatchFile(size_t rank) {
  return absl::StrCat("batch.rank-", rank, ".npz");
}

using Files = std::vector<std::pair<std::string, std::string>>;

Files FilesOf(const Capsule& capsule) {
  Files files = {{kModel, capsule.model},
                 {kCells, SerializeSafetensors(capsule.cells)}};
  if (!capsule.tuning.empty()) files.emplace_back(kTuning, capsule.tuning);
  for (size_t r = 0; r < capsule.ranks.size(); ++r) {
    files.emplace_back(BatchFile(r), SerializeNpz(capsule.ranks[r]));
  }
  return files;
}

// A line of JSON and a second one with its hash.
std::string ManifestText(const CapsuleFacts& facts, const Files& files) {
  nlohmann::ordered_json json = {{"schema", kSchema},
                                 {"step", facts.step},
                                 {"entry", facts.entry},
                                 {"why", facts.why},
                                 {"world_size", facts.world_size},
                                 {"threads", facts.threads},
                                 {"deterministic", facts.deterministic},
                                 {"op", facts.found.op},
                                 {"input", facts.found.input}};
  json["files"] = nlohmann::ordered_json::object();
  for (const auto& [name, content] : files) {
    json["files"][name] = {{"bytes", content.size()},
                           {"xxh64", Hex64(StableHash(content))}};
  }
  const std::string line =
      json.dump(-1, ' ', false,
                nlohmann::ordered_json::error_handler_t::replace) +
      "\n";
  return absl::StrCat(line, Hex64(StableHash(line)), "\n");
}

class Reader {
 public:
  Reader(const Directory& directory) : directory_(directory) {}

  absl::StatusOr<Capsule> Read();

 private:
  absl::Status ReadManifest(Capsule* capsule);
  absl::StatusOr<std::string> ReadFile(const std::string& name);
  template <typename... Parts>
  absl::Status Damaged(const std::string& name, const Parts&... parts) const {
    return CheckpointError(directory_.PathOf(name), ": ", parts...);
  }

  const Directory& directory_;
  std::map<std::string, std::string> sums_;  // by file
};

absl::Status Reader::ReadManifest(Capsule* capsule) {
  const auto text = directory_.Read(kManifest);
  if (!text.ok()) return Reclassified(text.status(), ExitCode::kCheckpoint);
  const size_t end = text->find('\n');
  const std::string line =
      end == std::string::npos ? "" : text->substr(0, end + 1);
  if (line.empty() ||
      text->substr(end + 1) != absl::StrCat(Hex64(StableHash(line)), "\n")) {
    return Damaged(kManifest, "damaged: its checksum is another");
  }
  const std::string path = directory_.PathOf(kManifest);
  const auto json = ParseJson(line, path);
  if (!json.ok()) return Reclassified(json.status(), ExitCode::kCheckpoint);
  JsonFields fields(*json, path);
  CapsuleFacts& facts = capsule->facts;
  int64_t schema = 0;
  fields.Integer("schema", kSchema, kSchema, &schema);
  fields.Integer("step", 0, kMaxExactInteger, &facts.step);
  fields.Text("entry", &facts.entry);
  fields.Text("why", &facts.why);
  fields.Integer("world_size", 1, kMostRanks, &facts.world_size);
  fields.Integer("threads", 1, kMostRanks, &facts.threads);
  fields.Bool("deterministic", &facts.deterministic);
  fields.Text("op", &facts.found.op);
  fields.Text("input", &facts.found.input);
  for (const auto& [name, file] : fields.Object("files").items()) {
    JsonFields of_file(file, absl::StrCat(path, ": ", name));
    of_file.Text("xxh64", &sums_[name]);
    if (!of_file.status().ok()) fields.Fail(of_file.status().message());
  }
  return fields.status().ok()
             ? absl::OkStatus()
             : Reclassified(fields.status(), ExitCode::kCheckpoint);
}

absl::StatusOr<std::string> Reader::ReadFile(const std::string& name) {
  auto content = directory_.Read(name, kMostBytes);
  if (!content.ok()) {
    return Reclassified(content.status(), ExitCode::kCheckpoint);
  }
  const auto sum = sums_.find(name);
  if (sum == sums_.end() || sum->second != Hex64(StableHash(*content))) {
    return Damaged(name, "damaged: its checksum is not that of ", kManifest);
  }
  return content;
}

absl::StatusOr<Capsule> Reader::Read() {
  Capsule capsule;
  HT_RETURN_IF_ERROR(ReadManifest(&capsule));
  HT_ASSIGN_OR_RETURN(capsule.model, ReadFile(kModel));
  if (sums_.count(kTuning) > 0) {
    HT_ASSIGN_OR_RETURN(capsule.tuning, ReadFile(kTuning));
  }
  HT_ASSIGN_OR_RETURN(const std::string cells, ReadFile(kCells));
  auto tensors = ParseSafetensors(cells, directory_.PathOf(kCells));
  if (!tensors.ok()) return Damaged(kCells, tensors.status().message());
  capsule.cells = *std::move(tensors);
  for (int64_t r = 0; r < capsule.facts.world_size; ++r) {
    HT_ASSIGN_OR_RETURN(const std::string npz, ReadFile(BatchFile(r)));
    auto arrays = ParseNpz(npz, directory_.PathOf(BatchFile(r)));
    if (!arrays.ok()) return Damaged(BatchFile(r), arrays.status().message());
    capsule.ranks.push_back(*std::move(arrays));
  }
  return capsule;
}

}  // namespace

absl::Status WriteCapsule(const std::string& directory,
                          const Capsule& capsule) {
  HT_ASSIGN_OR_RETURN(const Directory capsules, Directory::Make(directory));
  HT_ASSIGN_OR_RETURN(const Directory step, capsules.MakeChild(absl::StrCat(
                                                "step-", capsule.facts.step)));
  const Files files = FilesOf(capsule);
  for (const auto& [name, content] : files) {
    HT_RETURN_IF_ERROR(step.Write(name, content));
  }
  // Without it there is no capsule.
  HT_RETURN_IF_ERROR(step.Write(kManifest, ManifestText(capsule.facts, files)));
  step.Sync();
  capsules.Sync();
  return absl::OkStatus();
}

absl::StatusOr<Capsule> ReadCapsule(const std::string& path) {
  const auto directory = Directory::Open(path);
  if (!directory.ok()) {
    return Reclassified(directory.status(), ExitCode::kCheckpoint);
  }
  return Reader(*directory).Read();
}

}  // namespace runtime
}  // namespace halftone

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/disk/directory.h"
#include "graph/base/disk/sealed_folder.h"
#include "graph/base/error.h"
#include "graph/base/json/json_fields.h"
#include "graph/base/system/system_error.h"
#include "runtime/capsule/capsule.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kSchema = 1;
constexpr char kModel[] = "model.htc";
constexpr char kCells[] = "cells.safetensors";
constexpr char kTuning[] = "tuning.json";
constexpr int64_t kMostRanks = 1 << 13;

std::string BatchFile(size_t rank) {
  return absl::StrCat("batch.rank-", rank, ".npz");
}

FolderFiles FilesOf(const Capsule& capsule) {
  FolderFiles files = {{kModel, capsule.model},
                       {kCells, SerializeSafetensors(capsule.cells)}};
  if (!capsule.tuning.empty()) files.emplace_back(kTuning, capsule.tuning);
  for (size_t r = 0; r < capsule.ranks.size(); ++r) {
    files.emplace_back(BatchFile(r), SerializeNpz(capsule.ranks[r]));
  }
  return files;
}

nlohmann::ordered_json ToJson(const CapsuleFacts& facts) {
  return {{"schema", kSchema},
          {"step", facts.step},
          {"entry", facts.entry},
          {"why", facts.why},
          {"world_size", facts.world_size},
          {"threads", facts.threads},
          {"deterministic", facts.deterministic},
          {"op", facts.found.op},
          {"input", facts.found.input}};
}

absl::Status FromJson(const SealedFolder& folder, CapsuleFacts* facts) {
  const std::string path = folder.manifest_path();
  JsonFields fields(folder.facts(), path);
  int64_t schema = 0;
  fields.Integer("schema", kSchema, kSchema, &schema);
  fields.Integer("step", 0, kMaxExactInteger, &facts->step);
  fields.Text("entry", &facts->entry);
  fields.Text("why", &facts->why);
  fields.Integer("world_size", 1, kMostRanks, &facts->world_size);
  fields.Integer("threads", 1, kMostRanks, &facts->threads);
  fields.Bool("deterministic", &facts->deterministic);
  fields.Text("op", &facts->found.op);
  fields.Text("input", &facts->found.input);
  return Reclassified(fields.status(), ExitCode::kCheckpoint);
}

}  // namespace

absl::Status WriteCapsule(const std::string& directory,
                          const Capsule& capsule) {
  HT_ASSIGN_OR_RETURN(const Directory capsules, Directory::Make(directory));
  HT_ASSIGN_OR_RETURN(const Directory step, capsules.MakeChild(absl::StrCat(
                                                "step-", capsule.facts.step)));
  HT_RETURN_IF_ERROR(SealFolder(step, kCapsuleManifest, ToJson(capsule.facts),
                                FilesOf(capsule)));
  capsules.Sync();
  return absl::OkStatus();
}

absl::StatusOr<Capsule> ReadCapsule(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const SealedFolder folder,
                      SealedFolder::Open(path, kCapsuleManifest));
  Capsule capsule;
  HT_RETURN_IF_ERROR(FromJson(folder, &capsule.facts));
  HT_ASSIGN_OR_RETURN(capsule.model, folder.Read(kModel));
  if (folder.Has(kTuning)) {
    HT_ASSIGN_OR_RETURN(capsule.tuning, folder.Read(kTuning));
  }
  HT_ASSIGN_OR_RETURN(const std::string cells, folder.Read(kCells));
  auto tensors = ParseSafetensors(cells, kCells);
  if (!tensors.ok()) return folder.Damaged(kCells, tensors.status().message());
  capsule.cells = *std::move(tensors);
  for (int64_t r = 0; r < capsule.facts.world_size; ++r) {
    const std::string name = BatchFile(r);
    HT_ASSIGN_OR_RETURN(const std::string npz, folder.Read(name));
    auto arrays = ParseNpz(npz, name);
    if (!arrays.ok()) return folder.Damaged(name, arrays.status().message());
    capsule.ranks.push_back(*std::move(arrays));
  }
  return capsule;
}

}  // namespace runtime
}  // namespace halftone

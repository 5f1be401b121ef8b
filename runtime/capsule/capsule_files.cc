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

constexpr int64_t kOldestSchema = 1;
constexpr char kModel[] = "model.htc";
constexpr char kCells[] = "cells.safetensors";
constexpr char kTuning[] = "tuning.json";
constexpr int64_t kMostRanks = 1 << 13;

// `before` the last, in order, micro-batches have files of their own.
std::string BatchFile(size_t rank) {
  return absl::StrCat("batch.rank-", rank, ".npz");
}
std::string MicroBatchFile(size_t rank, size_t before) {
  return absl::StrCat("batch.rank-", rank, ".micro-", before, ".npz");
}

FolderFiles FilesOf(const Capsule& capsule) {
  FolderFiles files = {{kModel, capsule.model},
                       {kCells, SerializeSafetensors(capsule.cells)}};
  if (!capsule.tuning.empty()) files.emplace_back(kTuning, capsule.tuning);
  for (size_t r = 0; r < capsule.ranks.size(); ++r) {
    const std::vector<Capsule::Fed>& fed = capsule.ranks[r];
    for (size_t i = 0; i < fed.size(); ++i) {
      files.emplace_back(
          i + 1 == fed.size() ? BatchFile(r) : MicroBatchFile(r, i),
          SerializeNpz(fed[i]));
    }
  }
  return files;
}

nlohmann::ordered_json ToJson(const CapsuleFacts& facts) {
  return {{"schema", kCapsuleSchema},
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
  fields.Integer("schema", kOldestSchema, kCapsuleSchema, &facts->schema);
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

absl::StatusOr<Capsule::Fed> ReadFed(const SealedFolder& folder,
                                     const std::string& name) {
  HT_ASSIGN_OR_RETURN(const std::string npz, folder.Read(name));
  auto fed = ParseNpz(npz, name);
  if (!fed.ok()) return folder.Damaged(name, fed.status().message());
  return fed;
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
    std::vector<Capsule::Fed>& fed = capsule.ranks.emplace_back();
    while (folder.Has(MicroBatchFile(r, fed.size()))) {
      const std::string name = MicroBatchFile(r, fed.size());
      HT_ASSIGN_OR_RETURN(fed.emplace_back(), ReadFed(folder, name));
    }
    HT_ASSIGN_OR_RETURN(fed.emplace_back(), ReadFed(folder, BatchFile(r)));
    if (fed.size() != capsule.ranks[0].size()) {
      return folder.Damaged(
          BatchFile(r), absl::StrCat(fed.size(), " micro-batches, expected ",
                                     capsule.ranks[0].size(), " as of rank 0"));
    }
  }
  return capsule;
}

}  // namespace runtime
}  // namespace halftone

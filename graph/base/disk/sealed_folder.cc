#include "graph/base/disk/sealed_folder.h"

#include "absl/strings/str_cat.h"
#include "graph/base/json/json_fields.h"
#include "graph/base/json/json_reader.h"
#include "graph/base/system/system_error.h"
#include "graph/base/text.h"

namespace halftone {
namespace {

constexpr char kFiles[] = "files";
constexpr int64_t kMostBytes = int64_t{1} << 40;

}  // namespace

absl::Status SealFolder(const Directory& directory, const std::string& manifest,
                        nlohmann::ordered_json facts,
                        const FolderFiles& files) {
  facts[kFiles] = nlohmann::ordered_json::object();
  for (const auto& [name, content] : files) {
    HT_RETURN_IF_ERROR(directory.Write(name, content));
    facts[kFiles][name] = {{"bytes", content.size()},
                           {"xxh64", Hex64(StableHash(content))}};
  }
  const std::string line =
      facts.dump(-1, ' ', false,
                 nlohmann::ordered_json::error_handler_t::replace) +
      "\n";
  HT_RETURN_IF_ERROR(directory.Write(
      manifest, absl::StrCat(line, Hex64(StableHash(line)), "\n")));
  directory.Sync();
  return absl::OkStatus();
}

absl::StatusOr<SealedFolder> SealedFolder::Open(const std::string& path,
                                                const std::string& manifest) {
  auto directory = Directory::Open(path);
  if (!directory.ok()) {
    return Reclassified(directory.status(), ExitCode::kCheckpoint);
  }
  SealedFolder folder(*std::move(directory), manifest);
  HT_RETURN_IF_ERROR(folder.ReadManifest());
  return folder;
}

absl::Status SealedFolder::ReadManifest() {
  const auto text = directory_.Read(manifest_);
  if (!text.ok()) return Reclassified(text.status(), ExitCode::kCheckpoint);
  const size_t end = text->find('\n');
  const std::string line =
      end == std::string::npos ? "" : text->substr(0, end + 1);
  if (line.empty() ||
      text->substr(end + 1) != absl::StrCat(Hex64(StableHash(line)), "\n")) {
    return Damaged(manifest_, "damaged: its checksum is another");
  }
  const std::string path = manifest_path();
  auto json = ParseJson(line, path);
  if (!json.ok()) return Reclassified(json.status(), ExitCode::kCheckpoint);
  facts_ = *std::move(json);
  JsonFields fields(facts_, path);
  for (const auto& [name, file] : fields.Object(kFiles).items()) {
    JsonFields of_file(file, absl::StrCat(path, ": ", name));
    of_file.Text("xxh64", &sums_[name]);
    if (!of_file.status().ok()) fields.Fail(of_file.status().message());
  }
  return Reclassified(fields.status(), ExitCode::kCheckpoint);
}

absl::StatusOr<std::string> SealedFolder::Read(const std::string& name) const {
  auto content = directory_.Read(name, kMostBytes);
  if (!content.ok()) {
    return Reclassified(content.status(), ExitCode::kCheckpoint);
  }
  const auto sum = sums_.find(name);
  if (sum == sums_.end() || sum->second != Hex64(StableHash(*content))) {
    return Damaged(name, "damaged: its checksum is not that of ", manifest_);
  }
  return content;
}

}  // namespace halftone

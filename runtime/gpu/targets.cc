#include "runtime/gpu/targets.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/targets/target.h"
#include "runtime/gpu/choose_gpus.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/rendezvous/environment.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kFirstLine[] = "halftone kernels of cuda, interface ";

// Of the device that this rank gets; the first one where it is no rank, or
// there are too few, which is said when the device is made.
absl::StatusOr<std::string> OwnGpusTarget(const GpuLibrary& library) {
  const Environment env = CurrentEnvironment();
  const auto place = FindRank(env);
  if (place.ok() && place->source != "none") {
    const auto ordinal = OrdinalOf(*place, env);
    if (ordinal.ok()) {
      auto target = library->target_of(*ordinal);
      if (target.ok()) return target;
    }
  }
  return library->target_of(0);
}

}  // namespace

absl::StatusOr<const kernels::KernelRegistry*> KernelsOf(
    absl::string_view target) {
  HT_ASSIGN_OR_RETURN(const Target* known, TargetNamed(target, "--target "));
  if (!known->is_gpu()) return &kernels::Kernels();
  HT_ASSIGN_OR_RETURN(const GpuLibrary* library, GpuLibrary::Open());
  return &library->kernels();
}

absl::StatusOr<std::vector<std::string>> KernelKeysOf(
    absl::string_view target) {
  HT_ASSIGN_OR_RETURN(const Target* known, TargetNamed(target, "--target "));
  if (!known->is_gpu()) return kernels::Kernels().Keys();
  HT_ASSIGN_OR_RETURN(const std::string folder, BinaryFolder());
  const std::string path = absl::StrCat(folder, "/", kGpuKernelList);
  const auto text = ReadFile(path);
  if (!text.ok()) {
    return DeviceError("--target ", target,
                       ": no kernels for it in this build (", path,
                       " is not there): build //tools:all where a CUDA "
                       "toolkit is; known here: ",
                       CpuTarget().name);
  }
  HT_ASSIGN_OR_RETURN(std::vector<std::string> keys,
                      ParseKernelList(*text, path));
  kernels::KernelRegistry more;
  MoreGpuKernels()(0, &more);
  for (std::string& key : more.Keys()) {
    keys.push_back(std::move(key));
  }
  return keys;
}

std::string KernelListText(const std::vector<std::string>& keys) {
  return absl::StrCat(kFirstLine, GpuStamp(), "\n", absl::StrJoin(keys, "\n"),
                      "\n");
}

absl::StatusOr<std::vector<std::string>> ParseKernelList(
    absl::string_view text, absl::string_view path) {
  std::vector<std::string> lines =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  absl::string_view stamp;
  if (!lines.empty()) stamp = lines[0];
  if (!absl::ConsumePrefix(&stamp, kFirstLine)) {
    return DeviceError(path, ":1: expected \"", kFirstLine,
                       "...\"; build //tools:all again");
  }
  if (stamp != GpuStamp()) {
    return DeviceError(path, ":1: made by another build (interface ", stamp,
                       ", this binary has ", GpuStamp(),
                       "); build both: bazel build //tools:all");
  }
  lines.erase(lines.begin());
  return lines;
}

std::string DefaultTarget() {
  static const std::string& target = *new std::string([] {
    if (!MayHaveGpu()) return CpuTarget().name;
    const auto library = GpuLibrary::Open();
    if (!library.ok()) return CpuTarget().name;
    return OwnGpusTarget(**library).value_or(CpuTarget().name);
  }());
  return target;
}

}  // namespace runtime
}  // namespace halftone

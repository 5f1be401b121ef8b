#include "tools/report/doctor_report.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/system/system_error.h"
#include "graph/base/text.h"
#include "graph/base/wrap.h"
#include "graph/io/compiled_model.h"
#include "runtime/device/host_info.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/gpu/targets.h"
#include "runtime/rendezvous/socket.h"
#include "tools/common/json_text.h"
#include "tools/report/machine.h"

namespace halftone {
namespace tools {
namespace {

using State = Finding::State;

constexpr char kTemporary[] = "temporary files";
constexpr int64_t kGiB = int64_t{1} << 30;

absl::string_view NameOf(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kNote:
      return "note";
    case State::kAbsent:
      return "absent";
    case State::kBroken:
      return "broken";
  }
  return "";
}

Finding Binary() {
  return {
      State::kOk, "binary",
      absl::StrCat(kProducer, ", reads and writes compiled models of format ",
                   kCompiledModelFormat),
      ""};
}

Finding Cpu() {
  const std::string cpu = ThisCpu();
  const auto has = [&cpu](const char* extension) {
    return cpu.find(extension) != std::string::npos;
  };
  if (has("avx512_bf16") || has("amx_bf16"))
    return {State::kOk, "cpu", cpu, ""};
  return {State::kNote, "cpu", cpu,
          "no instructions for bf16 products: O1 to O3 save memory, not time"};
}

Finding Cores() {
  const int usable = runtime::UsableCores();
  const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  Finding finding = {State::kOk, "cores", absl::StrCat(usable, " usable"), ""};
  if (usable < online) {
    finding.state = State::kNote;
    absl::StrAppend(&finding.found, " of ", online);
    finding.advice =
        "the process's affinity mask or its container's quota takes the rest";
  }
  return finding;
}

Finding FreeMemory() {
  const int64_t bytes = runtime::FreeHostBytes();
  if (bytes < 0) return {State::kNote, "memory", "not known", ""};
  Finding finding = {State::kOk, "memory", HumanBytes(bytes) + " free", ""};
  if (bytes < kGiB) {
    finding.state = State::kNote;
    finding.advice =
        "halftone plan says what a model needs; smaller batches, "
        "memory.recompute and train.memory_budget need less";
  }
  return finding;
}

// The library with the GPU's code, and what that needs.
Finding GpuCode() {
  const auto library = runtime::GpuLibrary::Open();
  if (library.ok()) {
    return {State::kOk, "gpu code", "libhalftone_cuda.so opens", ""};
  }
  return {runtime::MayHaveGpu() ? State::kNote : State::kAbsent, "gpu code",
          "not usable", std::string(library.status().message())};
}

// The driver and the devices.
std::vector<Finding> Gpus() {
  if (!runtime::MayHaveGpu()) {
    return {{State::kAbsent, "gpu", "no NVIDIA driver",
             "wanted to train on GPUs alone: install the vendor's driver"}};
  }
  const auto gpus = GpusHere();
  if (!gpus.ok()) {
    return {{State::kNote, "gpu",
             absl::StrCat("NVIDIA driver, ", runtime::CountGpuNodes(),
                          " devices, none of them usable"),
             std::string(gpus.status().message())}};
  }
  std::vector<Finding> findings;
  for (const absl::StatusOr<std::string>& gpu : *gpus) {
    const std::string what = absl::StrCat("gpu ", findings.size());
    findings.push_back(gpu.ok() ? Finding{State::kOk, what, *gpu, ""}
                                : Finding{State::kNote, what, "cannot be used",
                                          std::string(gpu.status().message())});
  }
  return findings;
}

Finding CompilesFor() {
  const BuiltTargets targets = TargetsOfBuild();
  Finding finding = {
      State::kOk, "targets",
      absl::StrCat("compiles for ", absl::StrJoin(targets.built, " "),
                   "; runs on ", runtime::DefaultTarget(), " by default"),
      ""};
  if (!targets.missing.empty()) {
    finding.state = State::kAbsent;
    finding.advice =
        absl::StrCat("for ", absl::StrJoin(targets.missing, " "),
                     ": build with a CUDA toolkit (nvcc on PATH), which makes "
                     "libhalftone_cuda.so and its list of kernels");
  }
  return finding;
}

// Whether files can be made in `folder`, and how much fits.
Finding Folder(const std::string& what, const std::string& folder) {
  struct statvfs disk = {};
  if (statvfs(folder.c_str(), &disk) != 0 ||
      access(folder.c_str(), W_OK | X_OK) != 0) {
    const absl::Status why =
        SystemError(ExitCode::kDevice, errno, folder + ": cannot be written");
    return {State::kBroken, what, std::string(why.message()),
            what == kTemporary ? "set TMPDIR to a folder that can be written"
                               : "give --out a folder that can be written"};
  }
  const auto bytes = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
  Finding finding = {State::kOk, what,
                     absl::StrCat(folder, ", ", HumanBytes(bytes), " free"),
                     ""};
  if (bytes < kGiB) {
    finding.state = State::kNote;
    finding.advice =
        "a checkpoint takes the parameters and slots in f32; two are kept "
        "while one is written";
  }
  return finding;
}

std::string TemporaryFolder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

Finding OpenFiles() {
  constexpr rlim_t kEnough = 1024;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  Finding finding = {State::kOk, "open files",
                     limit.rlim_cur == RLIM_INFINITY
                         ? std::string("no limit")
                         : absl::StrCat("at most ", limit.rlim_cur),
                     ""};
  if (limit.rlim_cur < kEnough) {
    finding.state = State::kNote;
    finding.advice = absl::StrCat("ulimit -n ", kEnough,
                                  ": every rank has a socket to every other");
  }
  return finding;
}

// Ranks as processes meet over TCP, on one machine by the loopback.
Finding Loopback() {
  const auto listening = runtime::Listen("127.0.0.1", 0);
  if (!listening.ok()) {
    return {State::kBroken, "loopback", "nobody can listen on 127.0.0.1",
            absl::StrCat("ip link set lo up; run --ranks, whose ranks are "
                         "threads, needs it not: ",
                         listening.status().message())};
  }
  return {State::kOk, "loopback", "ranks of this machine can meet on 127.0.0.1",
          ""};
}

Finding Terminal() {
  if (isatty(STDOUT_FILENO) == 0) {
    return {State::kOk, "output", "no terminal: no colour, no line is redrawn",
            ""};
  }
  return {State::kOk, "output",
          absl::StrCat("a terminal of ", ColumnsOf(stdout), " columns, ",
                       MayColor(stdout) ? "colours" : "no colours"),
          ""};
}

}  // namespace

std::vector<Finding> ExamineMachine() {
  std::vector<Finding> findings = {Binary(), Cpu(), Cores(), FreeMemory(),
                                   GpuCode()};
  for (Finding& gpu : Gpus()) findings.push_back(std::move(gpu));
  findings.push_back(CompilesFor());
  findings.push_back(Folder(kTemporary, TemporaryFolder()));
  findings.push_back(Folder("this folder", "."));
  findings.push_back(OpenFiles());
  findings.push_back(Loopback());
  findings.push_back(Terminal());
  return findings;
}

bool CanTrain(absl::Span<const Finding> findings) {
  return std::none_of(
      findings.begin(), findings.end(),
      [](const Finding& finding) { return finding.state == State::kBroken; });
}

std::string DoctorText(absl::Span<const Finding> findings) {
  constexpr int kIndent = 26;
  const int columns = ColumnsOf(stdout);
  std::string text;
  for (const Finding& finding : findings) {
    std::string label = absl::StrCat(NameOf(finding.state), " ");
    label.resize(8, ' ');
    absl::StrAppend(&label, finding.what, " ");
    std::string said = PrintableName(finding.found);
    if (!finding.advice.empty()) {
      absl::StrAppend(&said, ": ", PrintableName(finding.advice));
    }
    text += Hanging(label, said, kIndent, columns);
  }
  return text;
}

std::string DoctorJson(absl::Span<const Finding> findings) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"ok", CanTrain(findings)},
                                 {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& finding : findings) {
    json["findings"].push_back({{"state", std::string(NameOf(finding.state))},
                                {"what", finding.what},
                                {"found", finding.found},
                                {"advice", finding.advice}});
  }
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone

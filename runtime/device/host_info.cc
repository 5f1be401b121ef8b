#include "runtime/device/host_info.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace halftone {
namespace runtime {
namespace {

// The whole of a small file of /proc or /sys; empty if it cannot be read.
// (Such files have no size, so ReadFile() of graph/base does not fit.)
std::string ReadKernelFile(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The value of the first line "key : value".
absl::string_view FieldOf(absl::string_view text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    if (absl::StripAsciiWhitespace(line.substr(0, colon)) != key) continue;
    return absl::StripAsciiWhitespace(line.substr(colon + 1));
  }
  return {};
}

// The folder of this process's cgroup (version 2); empty if there is none.
std::string CgroupFolder() {
  const std::string text = ReadKernelFile("/proc/self/cgroup");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "0::")) {
      return absl::StrCat("/sys/fs/cgroup", line == "/" ? "" : line);
    }
  }
  return "";
}

// What the control group `folder` and those around it still grant.
int64_t CgroupFreeBytes(std::string folder) {
  int64_t free = std::numeric_limits<int64_t>::max();
  while (absl::StartsWith(folder, "/sys/fs/cgroup")) {
    int64_t limit = 0;
    int64_t used = 0;
    if (absl::SimpleAtoi(ReadKernelFile(folder + "/memory.max"), &limit) &&
        absl::SimpleAtoi(ReadKernelFile(folder + "/memory.current"), &used)) {
      free = std::min(free, std::max<int64_t>(limit - used, 0));
    }
    folder.resize(folder.rfind('/'));
  }
  return free;
}

}  // namespace

std::string ProcessorName(absl::string_view cpuinfo) {
  absl::string_view name = FieldOf(cpuinfo, "model name");
  if (!name.empty()) return std::string(name);
  utsname machine;
  return uname(&machine) == 0 ? machine.machine : "unknown processor";
}

std::string ProcessorExtensions(absl::string_view cpuinfo) {
  absl::string_view flags = FieldOf(cpuinfo, "flags");
  if (flags.empty()) flags = FieldOf(cpuinfo, "Features");  // Arm
  const std::vector<absl::string_view> have = absl::StrSplit(flags, ' ');
  std::string found;
  for (absl::string_view name :
       {"asimd", "sve", "bf16", "avx2", "avx512f", "avx512_bf16", "avx512_fp16",
        "amx_tile", "amx_bf16"}) {
    if (std::find(have.begin(), have.end(), name) == have.end()) continue;
    absl::StrAppend(&found, found.empty() ? "" : " ", name);
  }
  return found;
}

int64_t AvailableBytes(absl::string_view meminfo) {
  absl::string_view value = FieldOf(meminfo, "MemAvailable");
  int64_t kib = 0;
  if (!absl::ConsumeSuffix(&value, " kB")) return -1;
  return absl::SimpleAtoi(value, &kib) ? kib * 1024 : -1;
}

namespace {

// Those that the process may run on, as it was told; none: not known.
const cpu_set_t& OwnCores() {
  static const cpu_set_t cores = [] {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) CPU_ZERO(&set);
    return set;
  }();
  return cores;
}

}  // namespace

void KeepToCores(int first, int count) {
  cpu_set_t some;
  CPU_ZERO(&some);
  int core = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &OwnCores())) continue;
    if (core >= first && core < first + count) CPU_SET(cpu, &some);
    ++core;
  }
  // Under a quota other processes have the same cores. Where the system
  // refuses it places the thread as ever.
  if (CPU_COUNT(&some) > 0 && UsableCores() == core) {
    sched_setaffinity(0, sizeof(some), &some);
  }
}

int UsableCores() {
  int cores = CPU_COUNT(&OwnCores()) > 0
                  ? CPU_COUNT(&OwnCores())
                  : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  // "max 100000" or "150000 100000": microseconds per period.
  const std::string quota = ReadKernelFile(CgroupFolder() + "/cpu.max");
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripAsciiWhitespace(quota), ' ');
  int64_t micros = 0;
  int64_t period = 0;
  if (words.size() == 2 && absl::SimpleAtoi(words[0], &micros) &&
      absl::SimpleAtoi(words[1], &period) && period > 0) {
    cores = std::min<int64_t>(cores, (micros + period - 1) / period);
  }
  return std::max(cores, 1);
}

int64_t FreeHostBytes() {
  int64_t free = AvailableBytes(ReadKernelFile("/proc/meminfo"));
  if (free < 0) free = std::numeric_limits<int64_t>::max();
  return std::min(free, CgroupFreeBytes(CgroupFolder()));
}

}  // namespace runtime
}  // namespace halftone

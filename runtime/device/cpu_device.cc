// The CPU: work is done when the call that enqueues it returns, so events have
// always happened and there is nothing to capture.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/targets/target.h"
#include "runtime/device/device.h"
#include "runtime/device/host_info.h"
#include "runtime/device/host_memory.h"

namespace halftone {
namespace runtime {
namespace {

class CpuEvent : public Event {
 public:
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::StatusOr<bool> Query() override { return true; }
};

class CpuStream : public Stream {
 public:
  explicit CpuStream(int threads) : threads_(threads) {}
  absl::Status Record(Event&) override { return absl::OkStatus(); }
  absl::Status Wait(Event&) override { return absl::OkStatus(); }
  absl::Status Copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Fill(void* to, uint8_t value, int64_t bytes) override {
    if (bytes > 0) std::memset(to, value, bytes);
    return absl::OkStatus();
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  int threads() const override { return threads_; }

 private:
  int threads_;
};

class CpuDevice : public Device {
 public:
  CpuDevice(int ordinal, int threads)
      : ordinal_(ordinal), threads_(std::max(threads, 1)) {}

  absl::string_view kind() const override { return "cpu"; }
  int ordinal() const override { return ordinal_; }
  std::string target() const override { return CpuTarget().name; }
  std::string Description() const override {
    std::ifstream file("/proc/cpuinfo");
    std::ostringstream cpuinfo;
    cpuinfo << file.rdbuf();
    const std::string extensions = ProcessorExtensions(cpuinfo.str());
    return absl::StrCat(ProcessorName(cpuinfo.str()), ", ", threads_, " of ",
                        UsableCores(), UsableCores() == 1 ? " core" : " cores",
                        extensions.empty() ? "" : ", ", extensions);
  }

  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    return AllocateHostMemory(bytes);
  }
  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(
      int64_t bytes) override {
    return AllocateHostMemory(bytes);
  }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(
      absl::string_view) override {
    return {absl::make_unique<CpuStream>(threads_)};
  }
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override {
    return {absl::make_unique<CpuEvent>()};
  }
  absl::StatusOr<std::unique_ptr<Graph>> Capture(
      Stream&, const std::function<absl::Status()>&) override {
    return {nullptr};
  }
  absl::StatusOr<int64_t> FreeBytes() override { return FreeHostBytes(); }

 private:
  int ordinal_;
  int threads_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(int ordinal, int threads) {
  return absl::make_unique<CpuDevice>(ordinal, threads);
}

}  // namespace runtime
}  // namespace halftone

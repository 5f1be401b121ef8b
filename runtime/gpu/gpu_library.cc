#include "runtime/gpu/gpu_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

struct Dependency {
  const char* prefix;  // of the file's name
  const char* what;
};
constexpr Dependency kDependencies[] = {
    {"libcudnn",
     "cuDNN 9: pip install nvidia-cudnn-cu13, or NVIDIA's package "
     "libcudnn9-cuda-13"},
    {"libnccl",
     "NCCL 2: pip install nvidia-nccl-cu13, or NVIDIA's package libnccl2"},
    {"libcublas",
     "cuBLAS: pip install nvidia-cublas, or NVIDIA's package libcublas-13-0"},
    {"libnvrtc",
     "NVRTC: pip install nvidia-cuda-nvrtc, or NVIDIA's package "
     "cuda-nvrtc-13-0"},
    {"libcuda.so", "the NVIDIA driver: package nvidia-driver"},
};

// "libhalftone_cuda.so: undefined symbol: ncclBroadcast" and, of a library
// with versions of symbols, ", version libcudnn.so.9".
constexpr absl::string_view kUndefined = "undefined symbol: ";

// "libcudnn.so.9: cannot open shared object file: No such file or directory"
constexpr absl::string_view kMissing = ": cannot open shared object file";

const GpuInterface* Enter(void* library, const char** own) {
  *own = "none";
  auto* entry = reinterpret_cast<GpuEntry*>(dlsym(library, kGpuEntryName));
  return entry == nullptr ? nullptr : entry(GpuStamp(), own);
}

// What the library that lacks the symbol should be; empty: it is none of those.
std::string Expected(absl::string_view symbol) {
  for (const Dependency& dependency : kDependencies) {
    const absl::string_view name = absl::StripPrefix(dependency.prefix, "lib");
    if (!absl::StartsWith(symbol, name)) continue;
    return absl::StrCat("; the ", dependency.prefix,
                        " found here does not fit this build, which needs ",
                        dependency.what);
  }
  return "";
}

}  // namespace

absl::Status ExplainOpenFailure(absl::string_view path,
                                absl::string_view dlerror) {
  const absl::string_view file = dlerror.substr(0, dlerror.find(':'));
  if (!absl::StrContains(dlerror, kMissing)) {
    absl::ConsumePrefix(&dlerror, absl::StrCat(path, ": "));
    absl::string_view symbol = dlerror;
    const std::string expected =
        absl::ConsumePrefix(&symbol, kUndefined) ? Expected(symbol) : "";
    return DeviceError(path, ": ", dlerror,
                       !expected.empty()
                           ? expected
                           : "; the CUDA libraries here do not fit this "
                             "build, or it is damaged");
  }
  if (file == path) {
    return DeviceError(
        path,
        ": there is no such file: this build has no GPU code; build it with "
        "`bazel build //tools:libhalftone_cuda.so` where a CUDA toolkit is, "
        "or use --target cpu");
  }
  for (const Dependency& dependency : kDependencies) {
    if (!absl::StartsWith(file, dependency.prefix)) continue;
    return DeviceError(path, ": ", file, " is missing; it comes with ",
                       dependency.what,
                       "; then put its folder into LD_LIBRARY_PATH, or its "
                       "files beside the binary");
  }
  return DeviceError(path, ": ", file,
                     " is missing; install it, or put it beside the binary");
}

absl::StatusOr<std::string> BinaryFolder() {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof(self));
  if (size <= 0 || size == sizeof(self)) {
    return DeviceError("/proc/self/exe: cannot tell where this binary is");
  }
  const absl::string_view path(self, size);
  return std::string(path.substr(0, path.rfind('/')));
}

bool MayHaveGpu() {
  return access("/dev/nvidiactl", F_OK) == 0 ||
         access("/dev/dxg", F_OK) == 0;  // Windows Subsystem for Linux
}

int CountGpuNodes() {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    absl::string_view number = name;
    int unused = 0;
    if (absl::ConsumePrefix(&number, "nvidia") &&
        absl::SimpleAtoi(number, &unused)) {
      ++count;
    }
  }
  return count;
}

GpuLibrary::GpuLibrary(const GpuInterface* interface)
    : interface_(interface),
      kernels_(std::make_unique<kernels::KernelRegistry>()) {
  interface_->register_kernels(*kernels_);
}

void GpuLibrary::AddMoreKernels() {
  added_ = MoreGpuKernels()(added_, kernels_.get());
}

MoreKernels& MoreGpuKernels() {
  static auto* const more = new MoreKernels(
      [](size_t known, kernels::KernelRegistry*) { return known; });
  return *more;
}

absl::StatusOr<const GpuLibrary*> GpuLibrary::Open() {
  HT_ASSIGN_OR_RETURN(const std::string folder, BinaryFolder());
  return OpenAt(absl::StrCat(folder, "/", kGpuLibraryName));
}

absl::StatusOr<const GpuLibrary*> GpuLibrary::OpenAt(const std::string& path) {
  static std::mutex mutex;
  static auto* const opened =
      new std::map<std::string, std::unique_ptr<GpuLibrary>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<GpuLibrary>& library = (*opened)[path];
  if (library != nullptr) {
    library->AddMoreKernels();
    return library.get();
  }
  // As nvidia-smi numbers devices; CUDA's own order begins with the fastest. It
  // is read at CUDA's first call, which lies behind this door.
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", /*overwrite=*/0);
  // All symbols at once: what does not fit is found here, not in a step.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return ExplainOpenFailure(path, dlerror());
  const char* own = nullptr;
  const GpuInterface* const interface = Enter(handle, &own);
  if (interface == nullptr) {
    return DeviceError(path, ": made by another build (interface ", own,
                       ", this binary has ", GpuStamp(),
                       "); build both: bazel build //tools:all");
  }
  library.reset(new GpuLibrary(interface));
  library->AddMoreKernels();
  return library.get();
}

}  // namespace runtime
}  // namespace halftone

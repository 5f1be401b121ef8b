#include "kernels/cuda/cudnn_parts.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace kernels {
namespace cuda {

absl::Status CheckCudnnParts(const std::string& folder) {
  for (const char* part : {"graph", "heuristic", "engines_precompiled",
                           "engines_runtime_compiled"}) {
    const std::string name = absl::StrCat("libcudnn_", part, ".so.9");
    const std::string beside = absl::StrCat(folder, "/", name);
    // As cuDNN does: beside itself, else wherever libraries are.
    const bool is_there = access(beside.c_str(), F_OK) == 0;
    // It stays open: cuDNN opens it in any case.
    if (dlopen((is_there ? beside : name).c_str(), RTLD_LAZY | RTLD_LOCAL) !=
        nullptr) {
      continue;
    }
    return DeviceError("cuDNN is not whole: ", dlerror(), "; ", name,
                       " belongs to libcudnn.so.9, which was found in ", folder,
                       ": install it again (pip install nvidia-cudnn-cu13, or "
                       "NVIDIA's package libcudnn9-cuda-13)");
  }
  return absl::OkStatus();
}

std::string CudnnFolder() {
  void* const library = dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
    return "";
  }
  const std::string path = map->l_name;
  return path.substr(0, path.rfind('/'));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

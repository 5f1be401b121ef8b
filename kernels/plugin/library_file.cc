#include "kernels/plugin/library_file.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <exception>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"

namespace halftone {
namespace kernels {
namespace {

// Runs what is a library's own: an exception becomes an error.
absl::Status Guarded(const std::string& path, absl::string_view doing,
                     const std::function<void()>& body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const std::exception& thrown) {
    return ModelError(path, ": it throws while ", doing, ": ", thrown.what());
  } catch (...) {
    return ModelError(path, ": it throws while ", doing,
                      " what is no std::exception");
  }
}

absl::Status OpenFailure(const std::string& path, absl::string_view why) {
  absl::ConsumePrefix(&why, absl::StrCat(path, ": "));
  if (absl::StrContains(why, "cannot open shared object file")) {
    return DeviceError(path, ": it needs a library that is not here: ", why,
                       "; put its folder into LD_LIBRARY_PATH");
  }
  return ModelError(path, ": it cannot be loaded: ", why,
                    "; expected a library of ops, made with g++ -shared -fPIC "
                    "for this machine");
}

absl::Status CheckFits(const std::string& path,
                       const HalftoneOpLibrary* library) {
  if (library == nullptr || library->magic != HALFTONE_OP_MAGIC) {
    return ModelError(path, ": ", HALFTONE_OP_ENTRY,
                      " gives no library of ops; declare it with "
                      "HALFTONE_OP_LIBRARY of halftone_op.h");
  }
  if (library->abi != HALFTONE_OP_ABI) {
    return ModelError(path, ": made for version ", library->abi,
                      " of halftone_op.h, this program has version ",
                      HALFTONE_OP_ABI,
                      "; build it again with this program's header");
  }
  if (library->op_size != sizeof(HalftoneOp) ||
      library->kernel_size != sizeof(HalftoneKernel) ||
      library->grad_op_size != sizeof(HalftoneGradOp) ||
      library->call_size !=
          sizeof(HalftoneKernelCall) + sizeof(HalftoneInferCall) ||
      library->type_size != sizeof(HalftoneType) + sizeof(HalftoneTensor)) {
    return ModelError(path,
                      ": its structs have other sizes than this program's; "
                      "build it without flags that change how structs lie in "
                      "memory (-fpack-struct, -m32)");
  }
  if (library->error != nullptr) {
    return ModelError(
        path, ": it throws while it declares its ops: ", library->error);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const HalftoneOpLibrary*> OpenLibraryFile(
    const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return DeviceError(path, ": there is no such library of ops");
  }
  // Without a slash it would be looked for elsewhere.
  const std::string full =
      absl::StrContains(path, '/') ? path : absl::StrCat("./", path);
  void* handle = nullptr;
  HT_RETURN_IF_ERROR(Guarded(path, "it is loaded", [&] {
    handle = dlopen(full.c_str(), RTLD_NOW | RTLD_LOCAL);
  }));
  if (handle == nullptr) {
    const char* const why = dlerror();
    return OpenFailure(full, why == nullptr ? "no reason given" : why);
  }
  auto* const entry =
      reinterpret_cast<HalftoneOpEntry>(dlsym(handle, HALFTONE_OP_ENTRY));
  if (entry == nullptr) {
    return ModelError(path, ": it has no symbol ", HALFTONE_OP_ENTRY,
                      ": no library of ops; declare them with "
                      "HALFTONE_OP_LIBRARY of halftone_op.h");
  }
  const HalftoneOpLibrary* library = nullptr;
  HT_RETURN_IF_ERROR(Guarded(path, "it declares its ops",
                             [&] { library = entry(HALFTONE_OP_ABI); }));
  HT_RETURN_IF_ERROR(CheckFits(path, library));
  return library;
}

}  // namespace kernels
}  // namespace halftone

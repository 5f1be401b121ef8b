// A driver that is of no use: libcuda.so.1 with the few functions that CUDA's
// run time asks first. Their results are in the environment.
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

int Number(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

int NotSupported() { return 801; }

}  // namespace

extern "C" {

int cuInit(unsigned) { return Number("DRIVER_INIT", 0); }

int cuDriverGetVersion(int* version) {
  *version = Number("DRIVER_VERSION", 13000);
  return 0;
}

int cuGetExportTable(const void**, const void*) { return NotSupported(); }

int cuGetProcAddress_v2(const char* name, void** found, int, unsigned long long,
                        int* result) {
  *found = reinterpret_cast<void*>(NotSupported);
  for (const auto& [known, function] :
       {std::pair{"cuInit", reinterpret_cast<void*>(cuInit)},
        std::pair{"cuDriverGetVersion",
                  reinterpret_cast<void*>(cuDriverGetVersion)},
        std::pair{"cuGetProcAddress",
                  reinterpret_cast<void*>(cuGetProcAddress_v2)}}) {
    if (std::strcmp(name, known) == 0) *found = function;
  }
  if (result != nullptr) *result = 0;
  return 0;
}

}  // extern "C"

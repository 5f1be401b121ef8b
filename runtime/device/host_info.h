// What the host offers: processor, cores, memory.
#ifndef HALFTONE_RUNTIME_DEVICE_HOST_INFO_H_
#define HALFTONE_RUNTIME_DEVICE_HOST_INFO_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// The processor's model name, or its architecture where that is all there is.
// `cpuinfo` is the text of /proc/cpuinfo.
std::string ProcessorName(absl::string_view cpuinfo);

// The extensions that matter to matrix kernels, widest last, by Linux's names:
// "avx2 avx512f avx512_bf16 amx_bf16"; empty if there is none.
std::string ProcessorExtensions(absl::string_view cpuinfo);

// "MemAvailable" of the text of /proc/meminfo in bytes; -1 if there is none.
int64_t AvailableBytes(absl::string_view meminfo);

// Cores that this process may run on (its affinity mask, and the container's
// CPU quota rounded up); at least 1.
int UsableCores();
// Keeps this thread, and those that it starts, to `count` of them from the
// `first` on; not under a quota, where they are nobody's own.
void KeepToCores(int first, int count);

// Memory that this process can still take: what the machine has left, or the
// container's limit if that is less.
int64_t FreeHostBytes();

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_HOST_INFO_H_

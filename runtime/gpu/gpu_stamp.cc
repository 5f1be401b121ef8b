#include "runtime/gpu/gpu_stamp.h"

#include "runtime/gpu/gpu_interface.h"

namespace halftone {
namespace runtime {

const char* GpuStamp() { return HALFTONE_GPU_STAMP; }

}  // namespace runtime
}  // namespace halftone

// The name of DType, for headers that only hand one on: what is in it changes
// with new types, and stands in dtype.h.
#ifndef HALFTONE_GRAPH_BASE_DTYPE_FWD_H_
#define HALFTONE_GRAPH_BASE_DTYPE_FWD_H_

#include <cstdint>

namespace halftone {

enum class DType : uint8_t;  // DType{} is DType::kInvalid

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_DTYPE_FWD_H_

// What a cast that the compiler makes is called: "<value>.<suffix>".
#ifndef HALFTONE_GRAPH_IR_CAST_NAMES_H_
#define HALFTONE_GRAPH_IR_CAST_NAMES_H_

#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"

namespace halftone {

// Paddle's names, without the dot: "cast_fp16", "cast_bf16", "cast_fp32"; empty
// for what no cast of the compiler makes. For people, and to find a value of
// one program in another; what a cast is says its op.
constexpr absl::string_view CastSuffix(DType to) {
  return to == DType::kF16    ? "cast_fp16"
         : to == DType::kBF16 ? "cast_bf16"
         : to == DType::kF32  ? "cast_fp32"
                              : "";
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_CAST_NAMES_H_

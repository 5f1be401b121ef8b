// What convolutions, transposed ones and their gradients have in common. All
// are made for 1, 2 or 3 spatial dims.
#ifndef HALFTONE_GRAPH_OPS_CONV_SCHEMA_H_
#define HALFTONE_GRAPH_OPS_CONV_SCHEMA_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/type.h"
#include "graph/schema/grad_context.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace ops {

// "conv2d", "conv2d_grad_filter", ...
std::string ConvName(int spatial, absl::string_view after = "");
// "[O, C / groups, kh, kw]".
std::string FilterText(int spatial, absl::string_view before);
// "input_hw": the attribute of a gradient with the size of what it makes.
std::string SizeAttr(absl::string_view of, int spatial);

// With a float type, the class and the layouts of convolutions.
OpSchema ConvSchema(absl::string_view name, absl::string_view doc, int spatial);
// Strides, paddings, dilations and groups.
OpSchema& AddConvAttrs(OpSchema& schema, int spatial);

// The attribute `groups`, 1 or more.
absl::StatusOr<int64_t> Groups(const InferContext& c);
absl::Status ExpectConstantFilter(const InferContext& c, const Dim& size,
                                  int spatial);

// The gradients of Filter and Bias (first: a layer's last parameter, so that
// buckets fill as DDP's do), where `image` and `result` are what a convolution
// with Filter turns into one another.
absl::Status GradConvBias(GradContext& g, ValueId out_grad);
absl::Status GradConvFilter(GradContext& g, ValueId image, ValueId result);

// Two operations for each product of an element of `elements` with the part of
// `filter` for its channel.
Dim ConvFlops(const Block& block, ValueId elements, ValueId filter);

void RegisterConvTranspose(OpRegistry& registry);  // conv_transpose.cc

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_CONV_SCHEMA_H_

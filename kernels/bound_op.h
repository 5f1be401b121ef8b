// An op bound to concrete shapes: what kernels see at planning time.
#ifndef HALFTONE_KERNELS_BOUND_OP_H_
#define HALFTONE_KERNELS_BOUND_OP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "graph/base/symbol_values.h"

namespace halftone {

class Block;
enum class Layout : uint8_t;
struct Op;
class OpSchema;
struct TensorType;

namespace kernels {

// A tensor with bound dims, contiguous in its layout's order.
struct TensorDesc {
  DType dtype{};
  Layout layout{};
  absl::InlinedVector<int64_t, 4> dims;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  int64_t bytes() const;
  friend bool operator==(const TensorDesc& a, const TensorDesc& b) {
    return a.dtype == b.dtype && a.layout == b.layout && a.dims == b.dims;
  }
};
std::string ToString(const TensorDesc& desc);  // "f16[32,16,28,28]"
// Of a sharded tensor this rank's part, of rank 1.
TensorDesc Bind(const TensorType& type, const SymbolValues& symbols);

// What a plan binds besides shapes; a plan, not an op, depends on it.
struct BindContext {
  int world_size = 1;
  int rank = 0;
  int threads = 1;            // compute threads of host kernels
  bool deterministic = true;  // only deterministic candidates
  // What the program is compiled for (graph/targets): libraries that choose
  // algorithms by device choose them by this.
  std::string target{};
};

// Kernels read of an op what is here, and nothing of the program: they do not
// include graph/ir.
class BoundOp {
 public:
  // `block` and `op` are borrowed.
  BoundOp(const Block& block, const Op& op, const SymbolValues& symbols,
          const BindContext& context);

  // For the planner and fused_op.h.
  const Op& op() const { return *op_; }
  const Block& block() const { return *block_; }
  const OpSchema& schema() const;
  const SymbolValues& symbols() const { return symbols_; }

  absl::string_view name() const;
  const std::string& type() const;  // "conv2d"
  const BindContext& context() const { return context_; }

  // Flat, in the op's slot order.
  absl::Span<const TensorDesc> inputs() const { return inputs_; }
  absl::Span<const TensorDesc> outputs() const { return outputs_; }
  // By slot name (CHECKed). The index is a flat position into inputs() and
  // the buffers of Enqueue; -1 if an optional slot is absent.
  int InputIndex(absl::string_view slot) const;
  int OutputIndex(absl::string_view slot) const;
  int InputCount(absl::string_view slot) const;
  int OutputCount(absl::string_view slot) const;
  const TensorDesc& Input(absl::string_view slot) const {
    return inputs_[InputIndex(slot)];
  }
  const TensorDesc& Output(absl::string_view slot) const {
    return outputs_[OutputIndex(slot)];
  }
  bool HasInput(absl::string_view slot) const { return InputIndex(slot) >= 0; }

  // Attributes by name and kind (CHECKed), the schema's default where the op
  // says nothing.
  bool Bool(absl::string_view name) const;
  int64_t Int(absl::string_view name) const;
  double Float(absl::string_view name) const;
  const std::string& Str(absl::string_view name) const;
  const std::vector<int64_t>& Ints(absl::string_view name) const;
  const std::vector<double>& Floats(absl::string_view name) const;
  // Whether ops of this type have such an attribute.
  bool KnowsAttr(absl::string_view name) const;

 private:
  const Block* block_;
  const Op* op_;
  SymbolValues symbols_;
  BindContext context_;
  std::vector<TensorDesc> inputs_, outputs_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_BOUND_OP_H_

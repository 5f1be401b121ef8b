// A conformance case as an op in a block, in one tuple of dtypes and layout.
#ifndef HALFTONE_TESTS_OPS_OP_INSTANCE_H_
#define HALFTONE_TESTS_OPS_OP_INSTANCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "kernels/bound_op.h"
#include "tests/ops/op_case.h"

namespace halftone {

// "softmax(f16,f32)@row_major" in its parts.
struct KernelKey {
  std::string op;
  std::vector<DType> binding;  // as the schema's type variables
  Layout layout = Layout::kRowMajor;
};
KernelKey ParseKernelKey(absl::string_view key);

struct OpInstance {
  std::unique_ptr<Program> program;
  Block* block = nullptr;
  OpId op;
  // By flat position.
  std::vector<std::vector<double>> inputs;
  std::vector<const CaseTensor*> outputs;

  kernels::BoundOp Bind(const kernels::BindContext& context) const {
    return kernels::BoundOp(*block, block->op(op), SymbolValues(), context);
  }
};

// Whether a tensor of the case has this type variable; one that none has is
// kInvalid in the key.
bool Binds(const CaseFile& file, const OpCase& c, const TypeVar& var);

// Whether the case is one for this key: its slots bind the same variables,
// its `only` allows the dtypes, its lead tensor can have the layout.
bool Fits(const CaseFile& file, const OpCase& c, const KernelKey& key);

// Builds the op through OpBuilder. Errors if the case does not fit its
// schema, or leaves an output out, or gives it other dims.
absl::StatusOr<OpInstance> MakeInstance(const CaseFile& file, const OpCase& c,
                                        const KernelKey& key);

}  // namespace halftone

#endif  // HALFTONE_TESTS_OPS_OP_INSTANCE_H_

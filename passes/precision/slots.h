// What a schema lets the precision of its slots be.
#ifndef HALFTONE_PASSES_PRECISION_SLOTS_H_
#define HALFTONE_PASSES_PRECISION_SLOTS_H_

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "graph/base/dtype.h"
#include "graph/ir/program.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {

enum class SlotKind : uint8_t {
  kFixed,    // no float tensor is read or made, or its dtype is not ours
  kKeepF32,  // f32 at every level
  kEither,   // f32 or low, as the op is
};

struct SchemaSlots {
  absl::InlinedVector<SlotKind, 8> inputs, outputs;
};

// The dtypes that precision passes move values between. f64 is none of them:
// who asked for it wants it.
constexpr bool IsAmpFloat(DType dtype) {
  return dtype == DType::kF32 || IsLow(dtype);
}

// Looks each schema up once.
class SlotTable {
 public:
  SlotTable();

  const SchemaSlots& Of(const OpSchema& schema);
  // `cast` ops have the dtypes that their author gave them.
  bool IsCast(const Op& op) const { return op.schema == cast_; }
  // Of floats to floats, that is.
  bool HasOwnDTypes(const Block& block, const Op& op) const {
    return IsCast(op) && !op.outputs.all().empty() &&
           IsFloat(block.dtype(op.outputs.all()[0]));
  }

 private:
  const OpSchema* cast_;
  absl::flat_hash_map<const OpSchema*, std::unique_ptr<SchemaSlots>> known_;
};

// The kind of slot that holds the value at flat input position `i`. Positions
// are asked in rising order: `slot` is where the last one was found.
inline SlotKind KindAt(const SchemaSlots& slots, const Op& op, int i,
                       int* slot) {
  while (op.inputs.end(*slot) <= i) ++*slot;
  return slots.inputs[*slot];
}

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_SLOTS_H_

// Joins of tensors and cuts into several: copies of rows.
#include "kernels/common/join.h"

#include "kernels/common/dispatch.h"
#include "kernels/cpu/copy.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

auto MakeJoin(const BoundOp& op) {
  return [join = JoinOf(op, false)](const Buffers& buffers,
                                    runtime::Stream& stream) {
    char* to = static_cast<char*>(buffers.outputs[0]);
    for (size_t i = 0; i < join.parts.size(); ++i) {
      CopyRows(static_cast<const char*>(buffers.inputs[i]), join.parts[i], to,
               join.row, join.outer, join.parts[i], stream.threads());
      to += join.parts[i];
    }
  };
}

auto MakeCut(const BoundOp& op) {
  return [join = JoinOf(op, true)](const Buffers& buffers,
                                   runtime::Stream& stream) {
    const char* from = static_cast<const char*>(buffers.inputs[0]);
    for (size_t i = 0; i < join.parts.size(); ++i) {
      CopyRows(from, join.row, static_cast<char*>(buffers.outputs[i]),
               join.parts[i], join.outer, join.parts[i], stream.threads());
      from += join.parts[i];
    }
  };
}

}  // namespace

void RegisterCpuJoin(KernelRegistry& registry) {
  for (const char* op : {"concat", "stack"}) {
    AddForSchema(registry, op, MakeCandidate("copy", MakeJoin));
  }
  for (const char* op : {"concat_grad", "split", "unstack"}) {
    AddForSchema(registry, op, MakeCandidate("copy", MakeCut));
  }
}

}  // namespace kernels
}  // namespace halftone

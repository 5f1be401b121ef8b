// The ONNX graph that an entry becomes, while it is being made: names of
// values, constants, nodes.
#ifndef HALFTONE_GRAPH_EXPORT_ONNX_BUILDER_H_
#define HALFTONE_GRAPH_EXPORT_ONNX_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype_fwd.h"
#include "graph/ir/program.h"
#include "proto/onnx.pb.h"

namespace halftone {
namespace onnx_export {

using IntList = std::vector<int64_t>;

class Builder {
 public:
  // Feeds, cells and results keep their names.
  Builder(const Program& program, const Entry& entry);

  const Block& block() const { return entry_.block(); }
  const Program& program() const { return program_; }
  proto::onnx::GraphProto& graph() { return graph_; }

  // Of a value of ours. A result that an op makes is called as the result is.
  std::string NameOf(ValueId value);
  // `wish`, or a name like it that nothing has.
  std::string Unused(const std::string& wish);
  proto::onnx::NodeProto* AddNode(absl::string_view type);

  // Constants, each made once.
  std::string Constant(DType dtype, const IntList& dims,
                       const std::string& bytes);
  std::string Ints(const IntList& values);        // [n] i64
  std::string Number(double value, DType dtype);  // a scalar
  std::string Reals(const std::vector<double>& values, const IntList& dims,
                    DType dtype);

  // A dim of the batch is named.
  void Describe(const std::string& name, const TensorType& type,
                proto::onnx::ValueInfoProto* info) const;
  // The results as outputs; before it all ops have become nodes.
  void AddOutputs();
  // Transpose(cast(x)) becomes cast(Transpose(x)) where the cast is to 16 bits:
  // the same, and onnxruntime 1.32 dies of a MatMul of the first.
  void TransposeBeforeCasts();

 private:
  const Program& program_;
  const Entry& entry_;
  proto::onnx::GraphProto graph_;
  absl::flat_hash_set<std::string> names_;
  std::map<ValueId, std::string> of_value_;
  absl::flat_hash_map<std::string, int> counts_;
  std::map<std::string, std::string> constants_;  // by content
};

// An element as its bytes; floats are rounded once.
void AppendElement(double value, DType dtype, std::string* bytes);

}  // namespace onnx_export
}  // namespace halftone

#endif  // HALFTONE_GRAPH_EXPORT_ONNX_BUILDER_H_

// One op of ours, as those that turn it into nodes of ONNX see it.
#ifndef HALFTONE_GRAPH_EXPORT_ONNX_OP_H_
#define HALFTONE_GRAPH_EXPORT_ONNX_OP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"
#include "graph/export/onnx_builder.h"
#include "graph/ir/attr.h"
#include "graph/ir/op.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace onnx_export {

class SourceOp;

// A node on its way into the graph:
//   op.Node("Relu").In(op.In("X")).Out();
class NodeMaker {
 public:
  NodeMaker(SourceOp* op, absl::string_view type);
  NodeMaker& In(const std::string& value);  // empty: it is left out
  NodeMaker& Attr(absl::string_view name, const AttrValue& value);
  // Adds it. Its results are those of our op in `slot`, or the i-th of them.
  void Out(absl::string_view slot = "Out", int i = -1);
  // Its result is one that other nodes read.
  std::string Made();
  std::vector<std::string> MadeAll(int results);

 private:
  SourceOp* op_;
  std::string type_;
  std::vector<std::string> inputs_;
  proto::onnx::NodeProto attrs_;
};

class SourceOp {
 public:
  SourceOp(const Op& op, Builder* builder) : op_(op), builder_(*builder) {}

  const std::string& type() const { return op_.schema->name(); }
  Builder& builder() { return builder_; }

  // ---- Inputs and outputs.
  int Count(absl::string_view slot) const;
  bool Has(absl::string_view slot) const { return Count(slot) > 0; }
  std::string In(absl::string_view slot, int i = 0);
  const TensorType& Type(absl::string_view slot, int i = 0) const;
  const Dims& DimsOf(absl::string_view slot) const { return Type(slot).dims; }
  DType dtype(absl::string_view slot) const { return Type(slot).dtype; }
  int Rank(absl::string_view slot) const { return Type(slot).rank(); }
  const TensorType& OutType(absl::string_view slot = "Out", int i = 0) const;
  int Outputs(absl::string_view slot) const;
  // Refuses outputs beside `slot` that something reads.
  void ExpectUnread(absl::string_view slot);

  // ---- Attributes, with the schema's default.
  bool HasAttr(absl::string_view name) const;
  bool Bool(absl::string_view name) const { return AttrAs<bool>(op_, name); }
  int64_t Int(absl::string_view n) const { return AttrAs<int64_t>(op_, n); }
  double Float(absl::string_view n) const { return AttrAs<double>(op_, n); }
  const std::string& String(absl::string_view name) const {
    return AttrAs<std::string>(op_, name);
  }
  const IntList& Ints(absl::string_view name) const {
    return AttrAs<IntList>(op_, name);
  }
  const std::vector<double>& Floats(absl::string_view name) const {
    return AttrAs<std::vector<double>>(op_, name);
  }
  // From 0 up.
  static int64_t Axis(int64_t axis, int rank) {
    return axis < 0 ? axis + rank : axis;
  }

  // ---- Nodes.
  NodeMaker Node(absl::string_view type) { return NodeMaker(this, type); }
  // The output is a value that is there already.
  void Same(const std::string& value, absl::string_view slot = "Out");
  std::string Cast(const std::string& value, DType from, DType to);
  // In other dims, of which one may be the batch's; refused if two are.
  std::string Reshaped(const std::string& value, const Dims& from,
                       const Dims& to);
  std::string Unsqueezed(const std::string& value, const IntList& axes);
  std::string Transposed(const std::string& value, const IntList& order);
  // A node of one or two inputs whose result others read.
  std::string Make(absl::string_view node, const std::string& x,
                   const std::string& y = "");

  // ---- What stands in the way.
  void Refuse(std::string kind) { refusals_.push_back(std::move(kind)); }
  const std::vector<std::string>& refusals() const { return refusals_; }

 private:
  friend class NodeMaker;
  const Op& op_;
  Builder& builder_;
  std::vector<std::string> refusals_;
};

}  // namespace onnx_export
}  // namespace halftone

#endif  // HALFTONE_GRAPH_EXPORT_ONNX_OP_H_

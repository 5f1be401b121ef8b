// One node of an ONNX graph, as those that turn it into ops of ours see it.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_NODE_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_NODE_H_

#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"
#include "graph/import/onnx_graph.h"
#include "graph/import/paddle_ops.h"

namespace halftone {

class OnnxNode;

// An op of ours on its way into the model:
//   node.Op("relu").In("X", x).Out();
// Once anything of a node has been refused, its ops are not added and their
// results have no names.
class OnnxOp {
 public:
  OnnxOp(OnnxNode* node, absl::string_view type);
  OnnxOp& In(absl::string_view slot, const std::string& value);
  OnnxOp& Attr(absl::string_view name, AttrValue value);
  // Adds it. Its result in `slot` is the node's output of that number.
  void Out(absl::string_view slot = "Out", int output = 0);
  // Its results are the outputs of the node, in one list.
  void OutList(absl::string_view slot);
  // Its result is one that other ops of the node read.
  std::string Made(absl::string_view slot = "Out");
  // Likewise `count` results in one list.
  std::vector<std::string> MadeList(absl::string_view slot, int64_t count);
  // Likewise of several slots, of a list once for each member; empty names
  // after a refusal.
  std::vector<std::string> MadeAll(
      std::initializer_list<absl::string_view> slots);

 private:
  // Names its results.
  std::string Name(absl::string_view slot, std::vector<std::string> wishes);
  void Add();

  OnnxNode* node_;
  proto::OpNode op_;
  absl::flat_hash_set<std::string> named_;  // its results
  std::vector<std::pair<std::string, AttrValue>> attrs_;
};

class OnnxNode {
 public:
  OnnxNode(const onnx::NodeProto& proto, int64_t opset, OnnxGraph* graph,
           const absl::flat_hash_set<std::string>* read);

  const std::string& type() const { return proto_.op_type(); }
  int64_t opset() const { return opset_; }
  OnnxGraph& graph() { return graph_; }

  // ---- Inputs. One that nobody asks for is refused.
  int inputs() const { return proto_.input_size(); }
  bool Has(int input);
  // Our value.
  std::string In(int input);
  // A type that no value has after a refusal: rank 0.
  TensorType Type(int input);
  int Rank(int input) { return Type(input).rank(); }
  bool IsFloat(int input);
  TensorType TypeOf(const std::string& value);
  // Null: it is not known at import.
  const OnnxConstant* Known(int input);
  // Whether ops on it are computed at import: it is no parameter.
  bool Folds(int input);
  // Whether it lies in the file.
  bool IsInitializer(int input);
  // Our values that are a sequence; null: refused.
  const std::vector<std::string>* Sequence(int input);
  // Known, or refused.
  std::vector<int64_t> KnownInts(int input);
  double KnownReal(int input, double otherwise);
  int64_t KnownInt(int input, int64_t otherwise);

  // ---- Outputs.
  int outputs() const { return proto_.output_size(); }
  bool IsRead(int output) const;
  void ExpectUnread(int output);
  // The output is a value that is there already.
  void Same(int output, const std::string& value);
  void Constant(int output, OnnxConstant constant);
  void SequenceOf(std::vector<std::string> values);  // is output 0

  // ---- Attributes. One that nobody asks for is refused.
  bool HasAttr(absl::string_view name);
  int64_t Int(absl::string_view name, int64_t otherwise);
  double Float(absl::string_view name, double otherwise);
  std::string String(absl::string_view name, absl::string_view otherwise);
  std::vector<int64_t> Ints(absl::string_view name,
                            std::vector<int64_t> otherwise);
  std::vector<double> Floats(absl::string_view name);
  std::vector<std::string> Strings(absl::string_view name);
  const onnx::TensorProto* Tensor(absl::string_view name);
  // Axes as attribute, or as an input.
  std::vector<int64_t> Axes(absl::string_view name, int input,
                            std::vector<int64_t> otherwise);
  void Ignore(absl::string_view name) { asked_.insert(std::string(name)); }
  // From 0 up; refused if there is none such.
  int64_t Axis(int64_t axis, int rank);

  // ---- Ops.
  OnnxOp Op(absl::string_view type) { return OnnxOp(this, type); }
  // Its value in dims, of which one may be the batch's.
  std::string Reshaped(const std::string& value, const Dims& dims);
  void ReshapeTo(const std::string& value, const Dims& dims);
  std::string Cast(const std::string& value, DType to);
  // Parameters that are never trained.
  std::string Parameter(OnnxConstant constant);
  std::string Number(double value, DType dtype = DType::kF32);

  // To f32; that the node computes whole numbers in it is told.
  std::string ToF32(const std::string& whole);
  bool through_f32() const { return through_f32_; }

  void Refuse(std::string kind, std::string found = "");
  bool failed() const { return !refusals_.empty(); }
  const std::vector<Refusal>& refusals() const { return refusals_; }
  // Refuses inputs and attributes that nobody has asked for.
  void CheckTaken();

 private:
  friend class OnnxOp;
  const onnx::AttributeProto* Ask(absl::string_view name,
                                  onnx::AttributeProto::AttributeType type);
  std::vector<int64_t> ShapeAttr(const std::string& value, const Dims& dims);

  const onnx::NodeProto& proto_;
  const int64_t opset_;
  OnnxGraph& graph_;
  const absl::flat_hash_set<std::string>& read_;
  absl::flat_hash_set<std::string> asked_;  // attributes
  std::set<int> asked_inputs_;
  std::vector<Refusal> refusals_;
  bool through_f32_ = false;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_NODE_H_

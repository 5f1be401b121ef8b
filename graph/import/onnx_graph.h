// The model that an ONNX graph becomes, while it is being made: its values
// with their types, its parameters, its ops.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_GRAPH_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_GRAPH_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/import/onnx_constant.h"
#include "graph/import/onnx_file.h"
#include "graph/import/onnx_trained.h"
#include "graph/ir/program.h"

namespace halftone {

// Floats are F32.
proto::DataType ProtoOf(DType dtype);

// What a name of the graph stands for.
struct OnnxValue {
  std::string name;  // of our value; empty: there is none yet
  std::optional<OnnxConstant> constant;
  // Where its elements lie in the file; null: nowhere.
  const onnx::TensorProto* tensor = nullptr;
  absl::string_view raw;
  // Of our values: it is no tensor.
  std::vector<std::string> sequence;
  bool initializer = false;  // a tensor of the file
  bool trained = false;      // of those: see OnnxTrained
  bool lost = false;         // what would make it has been refused
};

struct OnnxWeight {
  std::string name;
  OnnxTensor tensor;
};

class OnnxGraph {
 public:
  explicit OnnxGraph(const OnnxFile& file);

  // Null: nothing of that name.
  OnnxValue* Find(const std::string& name);
  // False: it is there already.
  bool Add(const std::string& name, OnnxValue value);

  // Its elements, if they are known and not too many; null: they are not.
  const OnnxConstant* Known(OnnxValue* value);
  // Whether ops on it are to be computed at import: it is known, and not what
  // training changes.
  bool Folds(OnnxValue* value);
  // Dims and dtype; floats that are not ours are f32.
  absl::StatusOr<TensorType> TypeOf(OnnxValue* value);
  // Our value; a parameter is made for what is known or lies in the file,
  // called `wish` or the like.
  absl::StatusOr<std::string> Materialize(const std::string& wish,
                                          OnnxValue* value);

  const TensorType& TypeOf(const std::string& name) const;
  // Null: none of that name.
  const proto::Parameter* FindParameter(const std::string& name) const;
  // `wish`, or a name like it that no value has.
  std::string Unused(const std::string& wish);
  absl::Status AddFeed(const std::string& wish, proto::Feed feed,
                       std::string* name);
  // Adds an op whose inputs are values of ours.
  absl::Status AddOp(
      proto::OpNode node,
      const std::vector<std::pair<std::string, AttrValue>>& attrs);
  // The parameter of that name is a running statistic, `init` at first.
  void SetStatistic(const std::string& name, double init);
  // The parameter of that name is not trained, though it lies in the file.
  void Freeze(const std::string& name);
  // What all elements of the parameter of that name are, if they are one
  // number.
  std::optional<double> UniformOf(const std::string& name) const;
  // Whether it is a parameter that is trained.
  bool Trains(const std::string& name) const;
  // Zeros, [B] i64; empty: no feed has a batch.
  absl::StatusOr<std::string> BatchOfZeros();

  proto::Model& model() { return model_; }
  Block& block() { return *block_; }
  Dim Batch();
  // The graph has a constant where the batch is now: --dims opened it. 0: it
  // was open.
  void OpenBatchOf(int64_t samples) { batch_was_ = samples; }
  int64_t batch_was() const { return batch_was_; }
  // Moves parameters and statistics into the model; those that no op reads are
  // left out.
  std::vector<OnnxWeight> Finish();

 private:
  struct Parameter {
    proto::Parameter proto;
    bool statistic = false;
    OnnxTensor tensor;
  };
  absl::StatusOr<std::string> AddParameter(const std::string& wish,
                                           OnnxTensor tensor, bool trainable,
                                           const OnnxConstant* known);

  // Our value of a parameter that is there already, as it is or turned; empty:
  // there is none.
  absl::StatusOr<std::string> Tied(const std::string& wish,
                                   const onnx::TensorProto& proto,
                                   const OnnxTensor& tensor);

  const OnnxFile& file_;
  const OnnxTrained trained_;
  proto::Model model_;
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  Block* block_;
  absl::flat_hash_map<std::string, std::unique_ptr<OnnxValue>> values_;
  std::vector<Parameter> parameters_;
  absl::flat_hash_map<std::string, size_t> parameter_by_name_;
  // Of those that are trained: see OnnxTrained::SourceOf.
  absl::flat_hash_map<std::string, std::vector<size_t>> of_source_;
  absl::flat_hash_map<std::string, int> counts_;
  std::string batch_of_zeros_;
  int64_t batch_was_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_GRAPH_H_

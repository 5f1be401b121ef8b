// Types of what has been imported so far, where a program leaves dims open.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_TYPES_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_TYPES_H_

#include <map>
#include <memory>
#include <string>

#include "google/protobuf/repeated_field.h"
#include "graph/import/paddle_program.h"
#include "graph/ir/program.h"

namespace halftone {

class PaddleTypes {
 public:
  PaddleTypes();

  // A feed or a parameter; a first dim of -1 is the batch.
  void AddSource(const std::string& value, proto::DataType dtype,
                 const google::protobuf::RepeatedField<int64_t>& dims);
  // What cannot be inferred is left out: that is told once all is there.
  void AddNode(const proto::OpNode& node);

  // Null: it is not known.
  const TensorType* TypeOf(const std::string& value) const;
  // `declared` with the dims that the value has, -1 where they are not numbers;
  // itself where they are not known.
  const paddle::VarDesc* Refined(const paddle::VarDesc* declared,
                                 const std::string& value);

 private:
  std::unique_ptr<Program> program_;
  Block* block_;
  std::map<std::string, paddle::VarDesc> refined_;  // by value
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_TYPES_H_

// Ops that both formats have, written from a node of ONNX.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_WRITER_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_WRITER_H_

#include <string>

#include "graph/import/onnx_node.h"
#include "graph/import/op_writer.h"

namespace halftone {

class OnnxWriter : public OpWriter {
 public:
  explicit OnnxWriter(OnnxNode* node) : node_(*node) {}
  std::string Add(const char* type, Slots in, Attrs attrs = {}) override;
  std::string Reshaped(const std::string& value, const Dims& dims) override;

 private:
  OnnxNode& node_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_WRITER_H_

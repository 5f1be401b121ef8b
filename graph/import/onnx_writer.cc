#include "graph/import/onnx_writer.h"

#include "graph/schema/op_registry.h"

namespace halftone {

std::string OnnxWriter::Add(const char* type, Slots in, Attrs attrs) {
  OnnxOp op = node_.Op(type);
  for (const auto& [slot, value] : in) op.In(slot, value);
  for (const auto& [name, value] : attrs) op.Attr(name, value);
  return op.Made(Ops().Find(type)->outputs()[0].name);
}

std::string OnnxWriter::Reshaped(const std::string& value, const Dims& dims) {
  return node_.failed() ? "" : node_.Reshaped(value, dims);
}

}  // namespace halftone

// ONNX's wire format where protobuf's own reader and writer would copy a
// gigabyte of weights: a message is its fields, one after the other.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_WIRE_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_WIRE_H_

#include <cstdint>
#include <string>

namespace halftone {
namespace onnx_wire {

// ModelProto.graph, GraphProto.initializer, TensorProto.raw_data.
inline constexpr int kGraph = 7, kInitializer = 5, kRawData = 9;

// The wire type of what has a length: messages, strings, bytes.
inline constexpr int kBytes = 2;

// What stands before so many bytes of the field of that number.
inline void AppendHead(int number, uint64_t bytes, std::string* out) {
  for (uint64_t rest : {static_cast<uint64_t>(number) << 3 | kBytes, bytes}) {
    for (; rest >= 0x80; rest >>= 7) {
      out->push_back(static_cast<char>(rest | 0x80));
    }
    out->push_back(static_cast<char>(rest));
  }
}

}  // namespace onnx_wire
}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_WIRE_H_

// ONNX models in a few words, and what becomes of them, for tests.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_IMPORT_TESTING_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_IMPORT_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/import/onnx_import.h"

namespace halftone {
namespace onnx_testing {

// A float tensor's info; "N" is a dim_param, "4" a dim_value.
std::string Info(const std::string& name, const std::vector<std::string>& dims,
                 int type = 1);
std::string Node(const std::string& type, const std::vector<std::string>& in,
                 const std::string& out, const std::string& rest = "");
// An initialiser.
std::string Ints(const std::string& name, const std::vector<int64_t>& values);
std::string IntAttr(const std::string& name, int64_t value);
// From x, f32[N, 4, 6], to y.
std::string Graph(const std::string& body);

std::string Bytes(const std::string& graph, int opset = 17);
absl::StatusOr<OnnxModel> ImportBytes(const std::string& bytes,
                                      OnnxOptions options = {});
// The text of the model that comes out, or the error's.
std::string Import(const std::string& graph, OnnxOptions options = {});

}  // namespace onnx_testing
}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_IMPORT_TESTING_H_

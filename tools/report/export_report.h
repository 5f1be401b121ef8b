// What `halftone export` prints.
#ifndef HALFTONE_TOOLS_REPORT_EXPORT_REPORT_H_
#define HALFTONE_TOOLS_REPORT_EXPORT_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/dtype_fwd.h"
#include "runtime/checkpoint/safetensors.h"
#include "tools/common/onnx_model.h"
#include "tools/common/rewritten_program.h"

namespace halftone {
namespace tools {

struct ExportedParameters {
  std::string path;
  int64_t step = 0;
  DType dtype{};
  bool from_copies = false;  // FP32 ones
};

// One line.
std::string ExportText(const ExportedParameters& exported,
                       const std::vector<runtime::Tensor>& tensors);
std::string ExportText(const RewrittenProgram& program);
std::string ExportText(const WrittenOnnx& written);
// One object.
std::string ExportJson(const ExportedParameters& exported,
                       const std::vector<runtime::Tensor>& tensors);
std::string ExportJson(const std::string& path,
                       const RewrittenProgram& program);
std::string ExportJson(const std::string& path, const WrittenOnnx& written);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_EXPORT_REPORT_H_

// What `halftone import` prints.
#ifndef HALFTONE_TOOLS_REPORT_IMPORT_REPORT_H_
#define HALFTONE_TOOLS_REPORT_IMPORT_REPORT_H_

#include <cstdint>
#include <string>

#include "graph/import/paddle_import.h"

namespace halftone {
namespace tools {

// The files of an import.
struct ImportFiles {
  std::string model;  // that was read
  std::string out;    // that was written, of `bytes`
  int64_t bytes = 0;
  std::string startup;  // empty: none
  std::string params;   // the .pdiparams, there or not
  std::string weights;  // the safetensors; empty: none was written
  int64_t tensors = 0, weight_bytes = 0;
};

// One screen.
std::string ImportText(const PaddleModel& imported, const ImportFiles& files);
// One object.
std::string ImportJson(const PaddleModel& imported, const ImportFiles& files);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_IMPORT_REPORT_H_

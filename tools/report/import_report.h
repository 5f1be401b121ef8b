// What `halftone import` prints.
#ifndef HALFTONE_TOOLS_REPORT_IMPORT_REPORT_H_
#define HALFTONE_TOOLS_REPORT_IMPORT_REPORT_H_

#include <string>

#include "graph/import/imported_model.h"
#include "tools/common/import_files.h"

namespace halftone {
namespace tools {

// One screen.
std::string ImportText(const ImportedModel& imported, const ImportFiles& files);
// One object.
std::string ImportJson(const ImportedModel& imported, const ImportFiles& files);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_IMPORT_REPORT_H_

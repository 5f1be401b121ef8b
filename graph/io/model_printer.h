#ifndef HALFTONE_GRAPH_IO_MODEL_PRINTER_H_
#define HALFTONE_GRAPH_IO_MODEL_PRINTER_H_

#include <string>

#include "proto/program.pb.h"

namespace halftone {

// The model as .pbtxt, an op to a line, parameters before the ops that read
// them. Parsing it gives the same message.
std::string PrintModel(const proto::Model& model);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_MODEL_PRINTER_H_

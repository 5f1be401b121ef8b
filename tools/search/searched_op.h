// An op as searches name it.
#ifndef HALFTONE_TOOLS_SEARCH_SEARCHED_OP_H_
#define HALFTONE_TOOLS_SEARCH_SEARCHED_OP_H_

#include <string>

#include "proto/compiled_model.pb.h"

namespace halftone {
namespace tools {

struct SearchedOp {
  std::string name, type, op_class;
  int line = 0;  // of the model's file; 0: unknown
};

inline SearchedOp OpOf(const proto::OpRow& row) {
  return {row.name(), row.type(), row.op_class(), row.line()};
}

inline bool IsForward(const proto::OpRow& row) {
  return row.role() == "forward";
}

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_SEARCHED_OP_H_

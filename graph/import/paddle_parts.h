// Several ops of ours as one of Paddle's.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_PARTS_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_PARTS_H_

#include <initializer_list>
#include <string>
#include <utility>

#include "graph/import/paddle_ops.h"
#include "graph/ir/attr.h"

namespace halftone {

// Ops whose results are named after the output of Paddle's op; the last one is
// it.
class Parts {
 public:
  using Slots = std::initializer_list<std::pair<const char*, std::string>>;
  using Attrs = std::initializer_list<std::pair<const char*, AttrValue>>;

  Parts(std::string out, PaddleScope& scope, ImportedOp* result)
      : out_(std::move(out)), scope_(scope), result_(*result) {}

  // Returns its result's name.
  std::string Add(const char* type, Slots in, Attrs attrs = {});
  // What was added last is the output.
  void End();

 private:
  const std::string out_;
  PaddleScope& scope_;
  ImportedOp& result_;
};

// Null: it is no tensor that the program declares.
const paddle::VarType::TensorDesc* TensorOf(const std::string& name,
                                            PaddleScope& scope);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_PARTS_H_

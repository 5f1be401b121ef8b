// One op of Paddle's as ops of ours.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_OPS_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_OPS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/import/paddle_program.h"
#include "graph/ir/type.h"

namespace halftone {

// The values around an op. Paddle's variables may be written more than once,
// our values are not: what is written again gets another name.
class PaddleScope {
 public:
  virtual ~PaddleScope() = default;
  // The value that the variable holds now.
  virtual std::string Read(const std::string& variable) = 0;
  // The name of the value that is written to it now.
  virtual std::string Write(const std::string& variable) = 0;
  // Whether any op that is imported reads it, or the model's user.
  virtual bool IsRead(const std::string& variable) = 0;
  // Whether nothing but such a slot of such ops reads it.
  virtual bool IsReadOnlyBy(const std::string& variable, absl::string_view op,
                            absl::string_view slot) = 0;
  // A name that no value has: `wish`, if it is free.
  virtual std::string Unused(const std::string& wish) = 0;
  // Null: none.
  virtual const paddle::VarDesc* Variable(const std::string& name) = 0;
  // The type of the variable's present value; null: it is not known.
  virtual const TensorType* TypeOf(const std::string& variable) = 0;
  // A feed whose first dim is the batch; empty: there is none.
  virtual std::string FeedOfBatch() = 0;
  // The op that wrote the variable's present value; null: none did.
  virtual const paddle::OpDesc* Writer(const std::string& variable) = 0;
};

// What is wrong with an op: the kind, by which ops are put together, and what
// was found.
struct Refusal {
  std::string kind;   // "attribute axes"
  std::string found;  // " = [1] is not taken"
};

struct ImportedOp {
  std::vector<proto::OpNode> nodes;
  std::vector<proto::Metric> metrics;
  // Values that the op had for those alone: nobody misses them.
  std::vector<std::string> taken;
  // Pairs of values whose first dims have to be equal.
  std::vector<std::pair<std::string, std::string>> equal_batches;
  // Transposes stand around it.
  bool channels_last = false;
  // Whole numbers are computed in f32.
  bool through_f32 = false;
  // Why it cannot be taken; empty: it is.
  std::vector<Refusal> refusals;
};

// By the table of ops that differ; any other by the schema of its name, slots
// and attributes.
ImportedOp ImportOp(const paddle::OpDesc& op, PaddleScope& scope);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_OPS_H_

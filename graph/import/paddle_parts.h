// Several ops of ours as one of Paddle's.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_PARTS_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_PARTS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/import/op_writer.h"
#include "graph/import/paddle_ops.h"
#include "graph/ir/attr.h"

namespace halftone {

// Ops whose results are named after the output of Paddle's op; the last one is
// it.
class Parts : public OpWriter {
 public:
  Parts(std::string out, PaddleScope& scope, ImportedOp* result)
      : out_(std::move(out)), scope_(scope), result_(*result) {}

  std::string Add(const char* type, Slots in, Attrs attrs = {}) override;
  std::string Reshaped(const std::string& value, const Dims& dims) override;
  std::string Cast(const std::string& value, int64_t to);
  // To f32 from that dtype; that the op computes whole numbers in it is told.
  std::string ToF32(const std::string& value, int64_t from);
  std::string Slice(const std::string& x, int64_t axis, int64_t first,
                    int64_t end);
  // first, first + 1 and so on, `count` of them: i64.
  std::string Counted(int64_t first, int64_t count);
  // Where column - row compares so with `diagonal`: bool[rows, columns].
  std::string ByDiagonal(const char* compare, int64_t rows, int64_t columns,
                         int64_t diagonal);
  // What was added last has a result in this slot, too.
  std::string AlsoIn(const char* slot);
  // What was added last is the output, or `out`.
  void End() { EndAs(out_); }
  void EndAs(const std::string& out);
  // This value is the output, whether it was added last or is another's.
  void EndWith(const std::string& value);

 private:
  const std::string out_;
  PaddleScope& scope_;
  ImportedOp& result_;
};

// Null: it is no tensor that the program declares.
const paddle::VarType::TensorDesc* TensorOf(const std::string& name,
                                            PaddleScope& scope);

// Whether ops of ours compute on it: those of 64 bits go through f32.
bool IsOurFloat(int64_t dtype);
// Whether an op's X is of such floats, or of what is not known.
bool ReadsFloats(const paddle::OpDesc& op, PaddleScope& scope);

// No dim is as large, and products of two such numbers fit.
inline constexpr int64_t kMostPaddleSize = int64_t{1} << 31;
// Attributes cut off there, either way.
int64_t SizeAttr(const paddle::OpDesc& op, absl::string_view name,
                 int64_t otherwise);
std::vector<int64_t> SizesAttr(const paddle::OpDesc& op,
                               absl::string_view name);

// What an op reads, with its dims as Paddle has them: -1 where it does not
// know.
struct PaddleOperand {
  std::string variable;
  std::vector<int64_t> dims;
  int64_t dtype = 0;
  std::string value;  // ours
  int rank() const { return static_cast<int>(dims.size()); }
};
// What an op reads in these slots, one after the other: a tensor each, or any
// number of them where the slot ends with "*".
class PaddleReader {
 public:
  PaddleReader(const paddle::OpDesc& op,
               std::initializer_list<const char*> slots, PaddleScope& scope,
               ImportedOp* result, const char* out = "Out");
  // Else it has been refused.
  bool ok() const { return ok_; }
  int size() const { return static_cast<int>(operands_.size()); }
  const PaddleOperand& operator[](int i) const { return operands_[i]; }
  // What is written, to be asked for once.
  Parts Write() { return Parts(scope_.Write(out_), scope_, &result_); }

 private:
  PaddleScope& scope_;
  ImportedOp& result_;
  bool ok_ = true;
  std::string out_;
  std::vector<PaddleOperand> operands_;
};

// The axis from 0 up; -1: there is none such, which is refused.
int AxisOf(const PaddleOperand& x, int64_t axis, ImportedOp* result);
// As ours: what is -1 in Paddle's is the batch.
Dims DimsOf(const std::vector<int64_t>& dims);
// Refuses: "expected ..., found [2, -1]".
void RefuseDimsOf(const PaddleOperand& x, const char* why, ImportedOp* result);
// Of 0 up to rank.
std::vector<int64_t> AxesOf(int rank, std::initializer_list<int> without = {});

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_PARTS_H_

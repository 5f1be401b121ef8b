// The text form of programs: for dumps, diffs, golden cases and people.
// Round trip: Parse(Print(p)) prints the same bytes.
//
//   program "mlp" dim B
//   loss loss over ce mask m
//   metric top1 = correct over label
//   output logits
//   constant c : f32[2] = [1, 0.5]
//   cell w : f32[784,9] parameter trainable applied init=uniform(-1, 1) line=4
//   cell w.velocity : f32[784,9] slot(w) applied init=constant(0)
//   cell w.cast_fp16 : f16[784,9] derived(w) applied
//   entry train {
//     feed x : f16[B,784]
//     fc: matmul(X=x, Y=w.cast_fp16) -> (Out=h : f16[B,9])   forward
//     y: sum(X=[h, h]) -> (Out=y : f16[B,9])   forward f16 GRAY_ALL_LOW <- fc
//     gradient w = w.grad
//     commit w <- w.next
//     result @loss_sum = loss_sum
//   }
//
// An op is `name: op(inputs) -> (outputs : types) {attributes}   role
// precision REASON <- ops origins=[ops] line=9`; what does not hold is left
// out, and a list slot prints as X=[a, b]. A fusion goes on with `body {`, a
// line per feed and op, `return a, b` and `}`. Only explicitly set attributes
// are printed. `gradient` says what the update of a parameter is to read, while
// there is none. Names and strings that are not plain words (letters, digits,
// _ . / @ $ % + -) stand in double quotes. '#' starts a comment; a line may be
// broken inside ( ) and [ ].
#ifndef HALFTONE_GRAPH_TEXT_TEXT_H_
#define HALFTONE_GRAPH_TEXT_TEXT_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {

std::string Print(const Program& program);
// In parts of some 64 KiB, one after the other.
void Print(const Program& program,
           absl::FunctionRef<void(absl::string_view)> sink);
std::string PrintEntry(const Entry& entry);
// One op on one line (a body follows on further lines).
std::string PrintOp(const Block& block, const Op& op);

// `file` names the source in errors: "file:line:column: expected ..., found".
absl::StatusOr<std::unique_ptr<Program>> Parse(absl::string_view text,
                                               absl::string_view file);

// A deep copy: same names, order, decisions; ids may differ.
std::unique_ptr<Program> Clone(const Program& program);

// Stable hash of all that Print prints.
uint64_t Fingerprint(const Program& program);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_TEXT_TEXT_H_

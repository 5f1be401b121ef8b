// Paddle's ProgramDesc as it lies in a .pdmodel.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_PROGRAM_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/io/model_reader.h"
#include "proto/paddle.pb.h"

namespace halftone {

namespace paddle = proto::paddle;

// Errors (kModel): what is no ProgramDesc, with what it seems to be, is cut
// off, holds no op, or more records than its size lets one expect.
absl::StatusOr<paddle::ProgramDesc> ParsePaddleProgram(
    absl::string_view content, absl::string_view file);

// "2.6.2"; "an unknown version" where the file does not say.
std::string PaddleVersion(const paddle::ProgramDesc& program);

// Null: none of that name.
const paddle::OpDesc::Attr* FindAttr(const paddle::OpDesc& op,
                                     absl::string_view name);
// `otherwise` where there is none of that name and kind.
int64_t IntAttr(const paddle::OpDesc& op, absl::string_view name,
                int64_t otherwise);
bool BoolAttr(const paddle::OpDesc& op, absl::string_view name, bool otherwise);
double FloatAttr(const paddle::OpDesc& op, absl::string_view name,
                 double otherwise);
// Empty where there is none of that name and kind.
std::vector<int64_t> IntsAttr(const paddle::OpDesc& op, absl::string_view name);
void SetInts(absl::string_view name, const std::vector<int64_t>& values,
             paddle::OpDesc* op);
std::string StringAttr(const paddle::OpDesc& op, absl::string_view name,
                       absl::string_view otherwise);

// What a fill_constant fills in: Paddle writes it as text, too, where f32 would
// round it.
double ConstantOf(const paddle::OpDesc& op);

// The values in a slot; empty: none.
const google::protobuf::RepeatedPtrField<std::string>& InputsOf(
    const paddle::OpDesc& op, absl::string_view slot);
const google::protobuf::RepeatedPtrField<std::string>& OutputsOf(
    const paddle::OpDesc& op, absl::string_view slot);

// INVALID: ours have none like it.
proto::DataType FromPaddle(paddle::VarType::Type type);
bool IsPaddleFloat(int64_t type);
// "INT8", or the number of a type that has no name.
std::string NameOf(paddle::VarType::Type type);

// The shortest decimal that reads back to the same f32, as a double: 0.1f as
// 0.1.
double Shortest(float value);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_PROGRAM_H_

// Fields of a strategy by path ("amp.loss_scaling.incr_ratio"), through
// protobuf reflection.
#ifndef HALFTONE_PASSES_OPTIONS_STRATEGY_FIELDS_H_
#define HALFTONE_PASSES_OPTIONS_STRATEGY_FIELDS_H_

#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/text_format.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace passes {

// Lines (1-based) of all fields that `message` has, members of repeated ones
// under "path[i]", too.
void CollectLines(const google::protobuf::Message& message,
                  const google::protobuf::TextFormat::ParseInfoTree& tree,
                  const std::string& prefix, std::map<std::string, int>* lines);

// Calls `visit` with the path of each field that is set: scalars, and repeated
// fields with at least one member. Messages are walked through.
void VisitSetFields(const google::protobuf::Message& message,
                    const std::string& prefix,
                    const std::function<void(const std::string&)>& visit);

// Sets every scalar that is not set to the default that the .proto file
// declares, where it declares one, and calls `visit` with its path. Messages
// of a oneof or without any such field stay as they are.
void FillDefaults(google::protobuf::Message* message, const std::string& prefix,
                  const std::function<void(const std::string&)>& visit);

// Unsets a field; a path without a field does nothing.
void ClearField(google::protobuf::Message* message, absl::string_view path);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_STRATEGY_FIELDS_H_

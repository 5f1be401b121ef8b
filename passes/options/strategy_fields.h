// Fields of a strategy by path ("amp.loss_scaling.incr_ratio"), through
// protobuf reflection.
#ifndef HALFTONE_PASSES_OPTIONS_STRATEGY_FIELDS_H_
#define HALFTONE_PASSES_OPTIONS_STRATEGY_FIELDS_H_

#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
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

// Sets every scalar that is not set to its default under `bundles` (DefaultOf
// in graph/strategy/fields.h), where it has one, and calls `visit` with its
// path and the default's origin. Parts that are always there are made.
void FillDefaults(google::protobuf::Message* message, const std::string& prefix,
                  absl::Span<const std::string> bundles,
                  const std::function<void(const std::string& path,
                                           const std::string& origin)>& visit);

// Calls `visit` with each scalar that is set or has to be (`member` -1), and
// each member of a list of scalars. What belongs to a member of a list of
// messages has that list's path and that member.
using VisitValue =
    std::function<void(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field,
                       int index, const std::string& path, int member)>;
void VisitValues(const google::protobuf::Message& message,
                 const std::string& prefix, const VisitValue& visit);

// Whether a field that is in no list, or a part, is set.
bool HasField(const google::protobuf::Message& message, absl::string_view path);

// Members of a list; the path is that of one.
int MembersAt(const google::protobuf::Message& message, absl::string_view path);

// Lists of words in all parts sorted, each word once: they are sets.
void AsSets(google::protobuf::Message* message);

// What a program is compiled by: without the fields and the parts that leave
// the graph alone, lists as sets.
proto::Strategy GraphFieldsOf(proto::Strategy strategy);

// Unsets a field; a path without a field does nothing.
void ClearField(google::protobuf::Message* message, absl::string_view path);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_STRATEGY_FIELDS_H_

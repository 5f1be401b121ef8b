// The method that a strategy's optimizer names: a member of its oneof.
#ifndef HALFTONE_GRAPH_STRATEGY_OPTIMIZER_METHOD_H_
#define HALFTONE_GRAPH_STRATEGY_OPTIMIZER_METHOD_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/strategy.pb.h"

namespace halftone {

// Null: none is named.
const google::protobuf::FieldDescriptor* MethodFieldOf(
    const proto::Optimizer& optimizer);

// "sgd momentum adam adamw ...", in the order of the file.
std::string MethodNames();

// The field of a method's message that a group's field of this name stands
// for; null: it has none. Paddle calls weight_decay lars_weight_decay in lars.
const google::protobuf::FieldDescriptor* FieldOfMethod(
    const google::protobuf::Descriptor& method, absl::string_view name);

// 0 where the optimizer names none.
double WeightDecayOf(const proto::Optimizer& optimizer);

// The optimizer as it is for the parameters of a group: its method has the
// group's fields in place of its own. What the method does not have is left
// out (check_strategy.cc refuses it).
proto::Optimizer WithGroup(const proto::Optimizer& optimizer,
                           const proto::Group& group);

// Whether a group's field belongs to the method, not to the group.
bool OverridesMethod(const google::protobuf::FieldDescriptor& group_field);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_STRATEGY_OPTIMIZER_METHOD_H_

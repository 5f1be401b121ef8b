#include "graph/strategy/optimizer_method.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace halftone {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const google::protobuf::OneofDescriptor& Methods() {
  return *proto::Optimizer::descriptor()->FindOneofByName("method");
}

void CopyField(const Message& from, const FieldDescriptor& source, Message* to,
               const FieldDescriptor& target) {
  const Reflection& get = *from.GetReflection();
  const Reflection& set = *to->GetReflection();
  if (source.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    set.SetBool(to, &target, get.GetBool(from, &source));
  } else {
    set.SetDouble(to, &target, get.GetDouble(from, &source));
  }
}

}  // namespace

const FieldDescriptor* MethodFieldOf(const proto::Optimizer& optimizer) {
  return optimizer.GetReflection()->GetOneofFieldDescriptor(optimizer,
                                                            &Methods());
}

std::string MethodNames() {
  std::vector<std::string> names;
  for (int i = 0; i < Methods().field_count(); ++i) {
    names.push_back(Methods().field(i)->name());
  }
  return absl::StrJoin(names, " ");
}

const FieldDescriptor* FieldOfMethod(const Descriptor& method,
                                     absl::string_view name) {
  const std::string plain(name);
  const FieldDescriptor* field = method.FindFieldByName(plain);
  return field != nullptr
             ? field
             : method.FindFieldByName(absl::StrCat("lars_", plain));
}

double WeightDecayOf(const proto::Optimizer& optimizer) {
  const FieldDescriptor* method = MethodFieldOf(optimizer);
  if (method == nullptr) return 0;
  const FieldDescriptor* decay =
      FieldOfMethod(*method->message_type(), "weight_decay");
  const Message& message =
      optimizer.GetReflection()->GetMessage(optimizer, method);
  return message.GetReflection()->GetDouble(message, decay);
}

bool OverridesMethod(const FieldDescriptor& group_field) {
  return group_field.number() != proto::Group::kMatchFieldNumber &&
         group_field.number() != proto::Group::kLrScaleFieldNumber;
}

proto::Optimizer WithGroup(const proto::Optimizer& optimizer,
                           const proto::Group& group) {
  proto::Optimizer changed = optimizer;
  const FieldDescriptor* method = MethodFieldOf(optimizer);
  if (method == nullptr) return changed;
  Message* message = changed.GetReflection()->MutableMessage(&changed, method);
  std::vector<const FieldDescriptor*> set;
  group.GetReflection()->ListFields(group, &set);
  for (const FieldDescriptor* field : set) {
    if (!OverridesMethod(*field)) continue;
    const FieldDescriptor* target =
        FieldOfMethod(*method->message_type(), field->name());
    if (target != nullptr) CopyField(group, *field, message, *target);
  }
  return changed;
}

}  // namespace halftone

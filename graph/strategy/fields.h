// The fields of a strategy, as proto/strategy.proto declares them: the one
// list that checks, defaults, flags, the ranks' agreement, `explain strategy`
// and docs/strategy.md are derived from. Before it, a field was copied by hand
// into eight to ten files, each of which could be forgotten.
#ifndef HALFTONE_GRAPH_STRATEGY_FIELDS_H_
#define HALFTONE_GRAPH_STRATEGY_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/field_options.pb.h"
#include "proto/strategy.pb.h"

namespace halftone {

struct StrategyField {
  enum class Kind : uint8_t {
    kPart,    // a message: "amp.loss_scaling"
    kField,   // what a path sets: a scalar or a list
    kMember,  // of a list of messages: "optimizer.group.match"
  };
  Kind kind = Kind::kField;
  std::string path;
  const google::protobuf::FieldDescriptor* descriptor = nullptr;
  const proto::FieldFacts* facts = nullptr;
  // With what its parts say.
  bool leaves_graph_alone = false;
  bool agrees_on_all_ranks = true;
};

// All fields, in the order of the file, each part before its own.
const std::vector<StrategyField>& StrategyFields();
// Null: there is none of that path.
const StrategyField* FindStrategyField(absl::string_view path);

// The fields of a message of any such file. An error names each that says too
// little, or nonsense: no doc; no range of a number, no words of a text; no
// default, and not what holds without; a default that it does not take; a flag
// that another one has; in the graph, and to be compared by ranks.
absl::StatusOr<std::vector<StrategyField>> ReadFields(
    const google::protobuf::Descriptor& message);

const proto::FieldFacts& FactsOf(
    const google::protobuf::FieldDescriptor& field);

// "O0, O1, O2 or O3", "a finite number above 0", "true or false".
std::string TakesText(const google::protobuf::FieldDescriptor& field);

// A scalar, or a member of a list, as `--set` takes it; where it is not set,
// the file's default.
std::string ValueText(const google::protobuf::Message& message,
                      const google::protobuf::FieldDescriptor& field,
                      int member = -1);
// The same by a path below `message`, with blanks between a list's members;
// "": neither it nor a default is there.
std::string ValueAt(const google::protobuf::Message& message,
                    absl::string_view path);

// All of it, in the form in which it is read.
std::string StrategyText(const proto::Strategy& strategy);

// What is wrong with a value: "expected pre or post, found "pro"; nearest:
// pre"; empty: nothing.
std::string Refusal(const google::protobuf::FieldDescriptor& field,
                    const std::string& value);

// The default of a scalar, as text, and what says so: the first of `bundles`
// ("level O3", "scaler apex") for which it has one, or "default". None: it has
// none.
struct FieldDefault {
  std::string value;
  std::string origin;
};
inline constexpr char kDefaultOrigin[] = "default";
std::optional<FieldDefault> DefaultOf(
    const google::protobuf::FieldDescriptor& field,
    absl::Span<const std::string> bundles);

// Whether an origin is a default or a bundle: what it says is found again.
bool IsDerivedOrigin(absl::string_view origin);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_STRATEGY_FIELDS_H_

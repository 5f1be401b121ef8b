#include "runtime/log/graph_def.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/log/proto_writer.h"

namespace halftone {
namespace runtime {
namespace {

// Field numbers of tensorflow.GraphDef, NodeDef, AttrValue and its ListValue,
// and TensorShapeProto.
constexpr int kNode = 1;
enum NodeDef { kName = 1, kOp, kInput, kAttr = 5 };
constexpr int kMapKey = 1, kMapValue = 2;
enum AttrValue { kList = 1, kString, kType = 6, kShape };
constexpr int kDim = 2, kSize = 1;

// tensorflow.DataType.
int DataType(const std::string& dtype) {
  static const std::pair<const char*, int> kTypes[] = {
      {"f32", 1}, {"f64", 2},   {"i32", 3},   {"u8", 4},
      {"i64", 9}, {"bool", 10}, {"bf16", 14}, {"f16", 19}};
  for (const auto& [name, number] : kTypes) {
    if (dtype == name) return number;
  }
  return 0;
}

// Each name once, in TensorFlow's characters.
class Names {
 public:
  std::string Take(absl::string_view name) {
    std::string legal = !name.empty() && name[0] == '@'
                            ? absl::StrCat("step/", name.substr(1))
                            : std::string(name);
    for (char& c : legal) {
      if (!absl::ascii_isalnum(c) &&
          std::string("_.-/\\").find(c) == std::string::npos) {
        c = '_';
      }
    }
    if (legal.empty() || !(absl::ascii_isalnum(legal[0]) || legal[0] == '.')) {
      legal = absl::StrCat("x", legal);
    }
    std::string unique = legal;
    for (int i = 1; !taken_.insert(unique).second; ++i) {
      unique = absl::StrCat(legal, "_", i);
    }
    return unique;
  }

 private:
  std::set<std::string> taken_;
};

void AppendAttribute(std::string* node, absl::string_view key,
                     absl::string_view value) {
  std::string entry;
  AppendBytes(&entry, kMapKey, key);
  AppendBytes(&entry, kMapValue, value);
  AppendBytes(node, kAttr, entry);
}

void AppendOutputs(std::string* node, const GraphNode& of) {
  if (of.outputs.empty()) return;
  std::string type, shapes, list;
  AppendNumber(&type, kType, DataType(of.outputs[0].dtype));
  AppendAttribute(node, "T", type);
  for (const GraphNode::Output& output : of.outputs) {
    std::string shape;
    for (const int64_t dim : output.dims) {
      std::string size;
      AppendNumber(&size, kSize, dim);
      AppendBytes(&shape, kDim, size);
    }
    AppendBytes(&shapes, kShape, shape);
  }
  AppendBytes(&list, kList, shapes);
  AppendAttribute(node, "_output_shapes", list);
}

}  // namespace

std::string GraphDef(absl::Span<const GraphNode> nodes) {
  Names legal;
  std::vector<std::string> names;
  for (const GraphNode& node : nodes) names.push_back(legal.Take(node.name));
  std::string graph;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::string node;
    AppendBytes(&node, kName, names[i]);
    AppendBytes(&node, kOp, nodes[i].op);
    for (const GraphNode::Input& input : nodes[i].inputs) {
      const std::string& from = names[input.node];
      AppendBytes(
          &node, kInput,
          input.output == 0 ? from : absl::StrCat(from, ":", input.output));
    }
    AppendOutputs(&node, nodes[i]);
    for (const auto& [key, text] : nodes[i].attributes) {
      std::string value;
      AppendBytes(&value, kString, text);
      AppendAttribute(&node, key, value);
    }
    AppendBytes(&graph, kNode, node);
  }
  return graph;
}

}  // namespace runtime
}  // namespace halftone

// Programs and parameters of other systems, damaged.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/import/onnx_import.h"
#include "graph/import/paddle_import.h"
#include "graph/import/paddle_params.h"
#include "gtest/gtest.h"
#include "tests/fuzz/mutator.h"

namespace halftone {
namespace {

constexpr int kMutations = 4000;

std::string Source(const std::string& name) {
  return ReadFile("tests/cli/paddle/" + name).value();
}

void ExpectModelError(const absl::Status& status, int seed) {
  if (status.ok()) return;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel) << seed << ": " << status;
}

void Import(const paddle::ProgramDesc& program, int seed) {
  PaddleOptions options;
  options.name = "fuzz";
  options.startup = &program;  // any program may be given as one
  ExpectModelError(ImportPaddle(program, "fuzz", options).status(), seed);
}

TEST(ImportFuzzTest, PaddlePrograms) {
  const std::vector<std::string> sources = {Source("small.pdmodel"),
                                            Source("small.train.pdmodel"),
                                            Source("small.startup.pdmodel")};
  for (int seed = 0; seed < kMutations; ++seed) {
    const auto program = ParsePaddleProgram(
        Mutator(seed).Mutate(sources[seed % sources.size()], /*text=*/false),
        "fuzz");
    ExpectModelError(program.status(), seed);
    if (program.ok()) Import(*program, seed);
  }
}

// Ops in another order, on each other's variables, with each other's
// attributes: what no edit of bytes comes to.
TEST(ImportFuzzTest, PaddleGraphs) {
  const auto good =
      ParsePaddleProgram(Source("small.train.pdmodel"), "good").value();
  for (int seed = 0; seed < kMutations; ++seed) {
    std::mt19937_64 random(seed);
    paddle::ProgramDesc program = good;
    auto& ops = *program.mutable_blocks(0)->mutable_ops();
    auto& vars = *program.mutable_blocks(0)->mutable_vars();
    const auto op = [&] { return &ops[random() % ops.size()]; };
    for (int edit = 0; edit < 3; ++edit) {
      paddle::OpDesc* const one = op();
      paddle::OpDesc* const other = op();
      auto* const tensor = vars[random() % vars.size()]
                               .mutable_type()
                               ->mutable_lod_tensor()
                               ->mutable_tensor();
      const int64_t dims[] = {-1, 0, 1, INT64_MAX, INT64_MIN};
      switch (random() % 6) {
        case 0:
          one->Swap(other);
          break;
        case 1:
          one->set_type(other->type());
          break;
        case 2:
          *one->mutable_attrs() = other->attrs();
          break;
        case 3:
          *one->mutable_inputs() = other->outputs();
          break;
        case 4:
          *one->mutable_outputs() = other->inputs();
          break;
        case 5:
          tensor->add_dims(dims[random() % 5]);
          break;
      }
    }
    Import(program, seed);
  }
}

TEST(ImportFuzzTest, PaddleParameters) {
  const auto program =
      ParsePaddleProgram(Source("small.pdmodel"), "good").value();
  const std::string good = Source("small.pdiparams");
  ASSERT_TRUE(ParsePaddleParams(good, "good", program).ok());
  for (int seed = 0; seed < kMutations; ++seed) {
    const std::string content = Mutator(seed).Mutate(good, /*text=*/false);
    const auto tensors = ParsePaddleParams(content, "fuzz", program);
    ExpectModelError(tensors.status(), seed);
    if (!tensors.ok()) continue;
    size_t bytes = 0;
    for (const PaddleTensor& tensor : *tensors) bytes += tensor.bytes.size();
    EXPECT_LT(bytes, content.size()) << seed;
  }
}

// Cut off at every byte.
TEST(ImportFuzzTest, BeginningsOfPaddlesFiles) {
  const std::string model = Source("small.pdmodel");
  const auto good = ParsePaddleProgram(model, "good").value();
  for (size_t size = 0; size < model.size(); ++size) {
    const auto program = ParsePaddleProgram(model.substr(0, size), "fuzz");
    ExpectModelError(program.status(), size);
    if (program.ok()) Import(*program, size);
  }
  const std::string params = Source("small.pdiparams");
  for (size_t size = 0; size < params.size(); ++size) {
    const auto tensors =
        ParsePaddleParams(params.substr(0, size), "fuzz", good);
    ASSERT_FALSE(tensors.ok()) << size;
    ExpectModelError(tensors.status(), size);
  }
}

// ---- ONNX.

std::string OnnxSource() {
  return ReadFile("tests/cli/onnx/small.onnx").value();
}

void ImportOnnxModel(const OnnxFile& file, int seed) {
  OnnxOptions options;
  options.name = "fuzz";
  if (seed % 2 == 1) options.loss = "cross_entropy:logits";
  const auto model = ImportOnnx(file, options);
  ExpectModelError(model.status(), seed);
}

TEST(ImportFuzzTest, OnnxModels) {
  const std::string good = OnnxSource();
  for (int seed = 0; seed < kMutations; ++seed) {
    const std::string content = Mutator(seed).Mutate(good, /*text=*/false);
    const auto file = ParseOnnx(content, "fuzz.onnx");
    ExpectModelError(file.status(), seed);
    if (file.ok()) ImportOnnxModel(*file, seed);
  }
}

// Nodes in another order, of each other's kinds, on each other's values, with
// each other's attributes; tensors and inputs of other dims.
TEST(ImportFuzzTest, OnnxGraphs) {
  const std::string content = OnnxSource();
  const auto good = ParseOnnx(content, "fuzz.onnx");
  ASSERT_TRUE(good.ok()) << good.status();
  const char* const kinds[] = {
      "Add",    "AveragePool",  "Clip",      "ConstantOfShape",
      "CumSum", "Expand",       "Flatten",   "MatMul",
      "OneHot", "Pad",          "Range",     "ReduceLogSumExp",
      "Slice",  "SpaceToDepth", "Split",     "Tile",
      "TopK",   "Trilu",        "Unsqueeze", "Where"};
  const int64_t numbers[] = {-1, 0, 1, 3, INT64_MAX, INT64_MIN, 1 << 20};
  for (int seed = 0; seed < kMutations; ++seed) {
    std::mt19937_64 random(seed);
    OnnxFile file = *good;
    onnx::GraphProto& graph = *file.model.mutable_graph();
    const auto node = [&] {
      return graph.mutable_node(static_cast<int>(random() % graph.node_size()));
    };
    for (int edit = 0; edit < 3; ++edit) {
      onnx::NodeProto* const one = node();
      onnx::NodeProto* const other = node();
      auto* const tensor = graph.mutable_initializer(
          static_cast<int>(random() % graph.initializer_size()));
      const int64_t number = numbers[random() % 7];
      switch (random() % 8) {
        case 0:
          one->Swap(other);
          break;
        case 1:
          one->set_op_type(kinds[random() % 20]);
          break;
        case 2:
          *one->mutable_attribute() = other->attribute();
          break;
        case 3:
          *one->mutable_input() = other->output();
          break;
        case 4:
          *one->add_input() = other->input_size() > 0 ? other->input(0) : "";
          break;
        case 5:
          tensor->add_dims(number);
          break;
        case 6:
          for (onnx::AttributeProto& attr : *one->mutable_attribute()) {
            attr.set_i(number);
            if (attr.ints_size() > 0) attr.set_ints(0, number);
            if (attr.t().dims_size() > 0) attr.mutable_t()->set_dims(0, number);
          }
          break;
        case 7:
          graph.mutable_input(0)
              ->mutable_type()
              ->mutable_tensor_type()
              ->mutable_shape()
              ->mutable_dim(static_cast<int>(random() % 4))
              ->set_dim_value(number);
          break;
      }
    }
    ImportOnnxModel(file, seed);
  }
}

TEST(ImportFuzzTest, BeginningsOfOnnxModels) {
  const std::string model = OnnxSource();
  for (size_t size = 0; size < model.size(); ++size) {
    const std::string content = model.substr(0, size);
    const auto file = ParseOnnx(content, "fuzz.onnx");
    ExpectModelError(file.status(), size);
    if (file.ok()) ImportOnnxModel(*file, size);
  }
}

// Tensors in files beside the model, some of which are links that lead out.
TEST(ImportFuzzTest, OnnxExternalData) {
  const std::string content = OnnxSource();
  const auto good = ParseOnnx(content, "fuzz.onnx");
  ASSERT_TRUE(good.ok()) << good.status();
  const std::string outer =
      absl::StrCat(::testing::TempDir(), "/fuzz-external");
  const std::string folder = outer + "/model";
  ASSERT_TRUE(MakeDirectories(folder).ok());
  const std::string secret = outer + "/secret";
  std::string data(good->raw[0]);
  ASSERT_TRUE(WriteFileAtomically(folder + "/data", data).ok());
  ASSERT_TRUE(WriteFileAtomically(secret, data).ok());
  unlink((folder + "/link").c_str());
  ASSERT_EQ(symlink("../secret", (folder + "/link").c_str()), 0);
  const std::string size = absl::StrCat(data.size());
  const std::vector<std::string> inside = {"data", "./data", "x/../data"};
  const std::vector<std::string> outside = {
      "link", "../secret", secret, "", ".", "..", "/dev/zero", "data/"};
  const std::vector<std::string> numbers = {
      "0", size,  "1",    "-1", "9223372036854775807", "18446744073709551616",
      "",  "4e1", "0x10", " 0"};
  for (int seed = 0; seed < kMutations; ++seed) {
    std::mt19937_64 random(seed);
    OnnxFile file = *good;
    file.path = folder + "/fuzz.onnx";
    file.raw[0] = absl::string_view();
    onnx::TensorProto& tensor =
        *file.model.mutable_graph()->mutable_initializer(0);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto set = [&tensor](const std::string& key,
                               const std::string& value) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    const bool out = random() % 2 == 0;
    const auto& places = out ? outside : inside;
    set("location", places[random() % places.size()]);
    if (random() % 2 == 0) set("offset", numbers[random() % numbers.size()]);
    if (random() % 2 == 0) set("length", numbers[random() % numbers.size()]);
    OnnxOptions options;
    options.name = "fuzz";
    const auto model = ImportOnnx(file, options);
    ExpectModelError(model.status(), seed);
    EXPECT_FALSE(out && model.ok()) << seed;
  }
}

}  // namespace
}  // namespace halftone

#include "tests/models/samples.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/io/model_printer.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"
#include "runtime/data/npz_testing.h"
#include "tests/models/training.h"

namespace halftone {
namespace runtime {

std::string WriteNpz(const LabelledSamples& samples, int bad_sample) {
  std::vector<float> x;
  std::vector<int64_t> label;
  for (int s = 0; s < samples.samples; ++s) {
    for (int i = 0; i < samples.features; ++i) {
      x.push_back(samples.feature(s, i));
    }
    label.push_back(samples.label(s));
  }
  if (bad_sample >= 0) {
    x[samples.features * bad_sample] = std::numeric_limits<float>::infinity();
  }
  ZipFile file;
  file.members = {
      {"x.npy",
       NpyFile{"<f4", absl::StrCat(samples.samples, ", ", samples.features),
               BytesOf(x)}
           .Serialize()},
      {"label.npy",
       NpyFile{"<i8", absl::StrCat(samples.samples, ","), BytesOf(label)}
           .Serialize()}};
  const std::string path = NewDirectory() + ".npz";
  EXPECT_TRUE(WriteFileAtomically(path, file.Serialize()).ok());
  return "npz:" + path;
}

absl::StatusOr<std::string> SmallGpt2() {
  ZooOptions options;
  options.layers = 2;
  options.width = 64;
  options.sequence = 8;
  HT_ASSIGN_OR_RETURN(const proto::Model model, ZooModel("gpt2", options));
  return PrintModel(model);
}

}  // namespace runtime
}  // namespace halftone

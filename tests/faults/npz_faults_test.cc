// An .npz that is damaged or does not fit the model: what the user of `run`
// sees, before a step is taken and anything is written.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/data/npz_testing.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using Parts = std::vector<std::string>;

constexpr char kModel[] = R"(
feed { name: "x" dims: [-1, 2] } feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w" dims: [2, 3] init { constant: 0 } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "ce" }
)";

runtime::ZipFile Good() {
  const std::vector<float> x(140, 1);
  const std::vector<int64_t> labels(70, 2);
  return {
      {{"x.npy",
        runtime::NpyFile{"<f4", "70, 2", runtime::BytesOf(x)}.Serialize(),
        /*deflate=*/true},
       {"label.npy",
        runtime::NpyFile{"<i8", "70,", runtime::BytesOf(labels)}.Serialize()}}};
}

Parts Command(const std::string& data) {
  static const std::string& model =
      *new std::string(WriteNew("m.pbtxt", kModel));
  return {"run",          model,
          "--set",        "optimizer.momentum.momentum=0.9",
          "--batch-size", "64",
          "--epochs",     "1",
          "--data",       "npz:" + data};
}

void ExpectNoData(const std::string& content, const Parts& says) {
  ExpectRefusedAndNothingWritten(Command(WriteNew("d.npz", content)), "--out",
                                 1, says);
}

TEST(NpzFaults, SoundDataIsTaken) {
  const Result run = Halftone(Command(WriteNew("d.npz", Good().Serialize())));
  EXPECT_EQ(run.exit_code(), 0) << run.err;
}

TEST(NpzFaults, ADamagedFile) {
  for (const Damage& damage : AllDamages(Good().Serialize())) {
    SCOPED_TRACE(damage.name);
    const std::string path = WriteNew("d.npz", damage.content);
    if (damage.missing) {
      ExpectRefusedAndNothingWritten(Command(path + "x"), "--out", 1,
                                     {"d.npzx: cannot open"});
      continue;
    }
    ExpectRefusedAndNothingWritten(Command(path), "--out", 1, {path});
  }
}

TEST(NpzFaults, ArraysThatAreOthers) {
  const auto with = [](const std::string& descr, const std::string& shape) {
    runtime::ZipFile file = Good();
    file.members[1].content =
        runtime::NpyFile{descr, shape, std::string(560, 0)}.Serialize();
    return file.Serialize();
  };
  ExpectNoData(with(">i8", "70,"), {"label: dtype >i8", "x.astype(\"<i8\")"});
  ExpectNoData(with("|O", "70,"), {"label: Python objects (pickled)",
                                   "numpy.asarray(x, dtype=\"int64\")"});
  ExpectNoData(with("<c8", "70,"), {"label: dtype <c8", "x.astype(\"int64\")"});
  ExpectNoData(with("<f8", "70,"), {"float64, the model expects int64"});
  ExpectNoData(with("<i4", "140,"), {"label: 140 samples, but ", "x has 70"});
  ExpectNoData(with("<i4", "70, 2"), {"int32[70,2], feed label takes "});
  // Claims that are more than there is, or can be, take no memory.
  ExpectNoData(with("<i8", "1099511627776,"), {"label: truncated"});
  ExpectNoData(with("<i8", "4294967296, 4294967296"), {"label: truncated"});
}

// A quarter of a gigabyte of zeros is a quarter of a megabyte.
TEST(NpzFaults, AMemberThatUnpacksToMuch) {
  runtime::ZipFile file = Good();
  const int64_t most = int64_t{1} << 28;
  file.members[0].content =
      runtime::NpyFile{"<f4", absl::StrCat(most / 8, ", 2"),
                       std::string(most, '\0')}
          .Serialize();
  ExpectNoData(file.Serialize(),
               {"x.npy: ", "that claim to be 256 MiB unpacked",
                "if you trust the file, add --max-unpack "});
}

}  // namespace
}  // namespace halftone

// What a run reads beside its model, damaged: strategies, op lists, IDX and
// .npz files, tensors, manifests of checkpoints, tuning tables, metrics.
#include <zlib.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"
#include "passes/options/options.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/dataset.h"
#include "runtime/data/idx_file.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/npz_testing.h"
#include "runtime/plan/tuning_table.h"
#include "runtime/report/metrics_log.h"
#include "runtime/train/progress.h"
#include "tests/fuzz/fuzz.h"

namespace halftone {
namespace {

TEST(RunFilesFuzzTest, Strategies) {
  const std::string source = *ReadFile("models/mnist_o1.pbtxt");
  Fuzz(source, /*text=*/true, ExitCode::kModel, 3000,
       [](const std::string& content) {
         const auto file = passes::ParseStrategy(content, "fuzz.pbtxt");
         if (!file.ok()) return file.status();
         return passes::ResolveOptions(*file, {}).status();
       });
}

TEST(RunFilesFuzzTest, OpLists) {
  const std::string path = Scratch() + "/lists";
  const auto strategy = passes::ParseStrategy(
      absl::StrCat("amp { level: \"O1\" op_lists: \"", path, "\" }"), "s");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  Fuzz(
      "op_lists { white: \"conv2d\" white: \"mul\" black: \"exp\"\n gray: "
      "\"relu\" clear: \"reshape\" unlisted: \"BLACK\" }\n",
      /*text=*/true, ExitCode::kModel, 1000, [&](const std::string& content) {
        WriteTo(path, content);
        return passes::ResolveOptions(*strategy, {}).status();
      });
}

std::string Idx() {
  std::string bytes("\0\0\x08\x03\0\0\0\x10\0\0\0\x04\0\0\0\x04", 16);
  for (int i = 0; i < 16 * 4 * 4; ++i) bytes += static_cast<char>(i);
  return bytes;
}

TEST(RunFilesFuzzTest, IdxFiles) {
  Fuzz(Idx(), /*text=*/false, ExitCode::kModel, 3000,
       [](const std::string& content) {
         return runtime::ParseIdx(content, "fuzz").status();
       });
}

TEST(RunFilesFuzzTest, PackedIdxFiles) {
  const std::string path = Scratch() + "/idx";
  gzFile file = gzopen((path + ".gz").c_str(), "wb");
  gzwrite(file, Idx().data(), static_cast<unsigned>(Idx().size()));
  gzclose(file);
  Fuzz(*ReadFile(path + ".gz"), /*text=*/false, ExitCode::kModel, 2000,
       [&](const std::string& content) {
         WriteTo(path + ".gz", content);
         return runtime::ReadIdx(path, runtime::kMaxUnpack).status();
       });
}

// Arrays stored, deflated and with 64-bit sizes, whose directory and headers
// are reached more often than by chance: the file is small.
TEST(RunFilesFuzzTest, Arrays) {
  const std::string path = Scratch() + "/x.npz";
  runtime::FeedSpec x, y;
  x.name = "x";
  x.dtype = DType::kF32;
  x.dims = {2};
  y.name = "y";
  y.dtype = DType::kI64;
  y.classes = 9;
  const std::string rows = runtime::BytesOf<float>({1, 2, 3, 4, 5, 6});
  const std::string labels = runtime::BytesOf<int32_t>({0, 8, -100});
  for (const bool wide : {false, true}) {
    const runtime::ZipFile file{
        {{"x.npy", runtime::NpyFile{"<f4", "3, 2", rows, 1, wide}.Serialize(),
          /*deflate=*/!wide, wide},
         {"y.npy", runtime::NpyFile{"<i4", "3,", labels, 2}.Serialize(),
          /*deflate=*/wide, wide}}};
    Fuzz(file.Serialize(), /*text=*/false, ExitCode::kModel, 1000,
         [&](const std::string& content) -> absl::Status {
           WriteTo(path, content);
           const auto data = runtime::OpenData("npz:" + path, {x, y}, {});
           if (!data.ok()) return data.status();
           std::vector<uint8_t> sample(8);
           const int64_t last = data->train->size() - 1;
           HT_RETURN_IF_ERROR(
               data->train->Read({last}, 0, absl::MakeSpan(sample)));
           return data->train->Read({last}, 1, absl::MakeSpan(sample));
         });
  }
}

TEST(RunFilesFuzzTest, ArrayHeaders) {
  const std::string npy =
      runtime::NpyFile{"<f4", "3, 2", std::string(24, 0)}.Serialize();
  Fuzz(npy, /*text=*/true, ExitCode::kModel, 5000,
       [&](const std::string& content) -> absl::Status {
         const auto array = runtime::ParseNpy(content, "fuzz");
         if (!array.ok()) return array.status();
         std::string made, note;
         return runtime::ElementsAs(*array, DType::kF64, &made, &note).status();
       });
}

runtime::Checkpoint MakeCheckpoint() {
  runtime::Checkpoint checkpoint;
  checkpoint.manifest.step = 7;
  checkpoint.manifest.level = "O1";
  checkpoint.manifest.numbers["loss_sum"] = 0.5;
  checkpoint.manifest.texts["note"] = "text";
  for (const char* name : {"w", "w.velocity", "b"}) {
    checkpoint.tensors.push_back(
        {name, DType::kF32, {2, 3}, std::string(24, '\1')});
  }
  return checkpoint;
}

TEST(RunFilesFuzzTest, Tensors) {
  Fuzz(runtime::SerializeSafetensors(MakeCheckpoint().tensors), /*text=*/false,
       ExitCode::kModel, 5000, [](const std::string& content) {
         return runtime::ParseSafetensors(content, "fuzz").status();
       });
}

// What a reader holds is never more than the file.
TEST(RunFilesFuzzTest, TensorHeaders) {
  const std::string file =
      runtime::SerializeSafetensors(MakeCheckpoint().tensors);
  uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof(size));
  const std::string data = file.substr(sizeof(size) + size);
  FuzzValues(file.substr(sizeof(size), size), ExitCode::kModel, 3000,
             [&](const std::string& header) -> absl::Status {
               const uint64_t bytes = header.size();
               const auto tensors = runtime::ParseSafetensors(
                   absl::StrCat(
                       absl::string_view(reinterpret_cast<const char*>(&bytes),
                                         sizeof(bytes)),
                       header, data),
                   "fuzz");
               if (!tensors.ok()) return tensors.status();
               size_t held = 0;
               for (const auto& tensor : *tensors) held += tensor.bytes.size();
               EXPECT_EQ(held, data.size());
               return absl::OkStatus();
             });
}

// With a true checksum, so that all of the reader is reached.
class ManifestFuzzTest : public ::testing::Test {
 protected:
  ManifestFuzzTest() : path_(Scratch() + "/ckpt/step-7") {
    runtime::Checkpoint checkpoint = MakeCheckpoint();
    runtime::Progress progress;
    progress.step = 7;
    progress.eval.metrics["top1"] = {350, 359};
    checkpoint.manifest.numbers = runtime::ToNumbers(progress);
    EXPECT_TRUE(
        runtime::WriteCheckpoint(Scratch() + "/ckpt", checkpoint, 3).ok());
    body_ = std::vector<std::string>(
        absl::StrSplit(*ReadFile(path_ + "/manifest.json"), '\n'))[0];
  }
  // As a run that resumes does.
  absl::Status Read(const std::string& body) const {
    WriteTo(path_ + "/manifest.json",
            absl::StrCat(body, "\n", Hex64(StableHash(body)), "\n"));
    const auto checkpoint = runtime::ReadCheckpoint(path_);
    if (!checkpoint.ok()) return checkpoint.status();
    const auto progress = runtime::FromNumbers(checkpoint->manifest.numbers);
    if (progress.ok()) {
      EXPECT_GE(progress->step, 0);
      EXPECT_GE(progress->epoch, 0);
      EXPECT_GE(progress->sample, 0);
    }
    EXPECT_GE(checkpoint->manifest.step, 0);
    EXPECT_GE(checkpoint->manifest.epoch, 0);
    EXPECT_GE(checkpoint->manifest.sample, 0);
    EXPECT_GE(checkpoint->manifest.world_size, 1);
    return absl::OkStatus();
  }

  std::string path_, body_;
};

TEST_F(ManifestFuzzTest, Bytes) {
  Fuzz(body_, /*text=*/true, ExitCode::kCheckpoint, 2000,
       [&](const std::string& content) { return Read(content); });
}

TEST_F(ManifestFuzzTest, Values) {
  FuzzValues(body_, ExitCode::kCheckpoint, 4000,
             [&](const std::string& content) { return Read(content); });
}

std::string SomeTable() {
  runtime::TuningTable table;
  table.Set("conv2d f16", {"blocked", 4096, true});
  table.Set("matmul f32", {"plain", 0, false});
  return table.Serialize();
}

absl::Status ParseTable(const std::string& content) {
  const auto table = runtime::TuningTable::Parse(content, "fuzz");
  if (!table.ok()) return table.status();
  for (const auto& [key, entry] : table->entries()) {
    EXPECT_GE(entry.workspace_bytes, 0) << key;
  }
  return absl::OkStatus();
}

TEST(RunFilesFuzzTest, TuningTables) {
  Fuzz(SomeTable(), /*text=*/true, ExitCode::kModel, 3000, ParseTable);
  // Schema 1, without the checksum that would be all that is looked at.
  const std::string table = SomeTable();
  const std::string unsealed = absl::StrCat(
      absl::StrReplaceAll(table.substr(0, table.rfind(",\"xxh64\"")),
                          {{"\"schema\":2", "\"schema\":1"}}),
      "}");
  FuzzValues(unsealed, ExitCode::kModel, 3000, ParseTable);
  Fuzz(unsealed, /*text=*/true, ExitCode::kModel, 3000, ParseTable);
}

// Any sequence of lines: a run that resumes keeps the sound ones up to its
// step, whole and in their order.
TEST(RunFilesFuzzTest, Metrics) {
  const std::string path = Scratch() + "/metrics.jsonl";
  const std::string line =
      "{\"event\":\"step\",\"step\":20,\"loss\":0.5,\"ms\":{\"step\":5.7}}";
  std::vector<std::string> kinds = {line,
                                    "",
                                    "null",
                                    "{\"step\":null}",
                                    "{\"step\":21}",
                                    "{\"step\":-1}",
                                    "{\"step\":1e300}",
                                    "[" + line + "]",
                                    std::string(17 << 20, '7'),
                                    std::string("\0\xff\r", 3),
                                    std::string(100000, '['),
                                    line + line};
  std::mt19937_64 random(1);
  for (int run = 0; run < 60; ++run) {
    std::string content, expected;
    for (size_t lines = random() % 8; lines > 0; --lines) {
      const std::string& one = kinds[random() % kinds.size()];
      absl::StrAppend(&content, one, "\n");
      if (one == line) absl::StrAppend(&expected, one, "\n");
    }
    if (random() % 2 == 0) content += line.substr(0, random() % line.size());
    WriteTo(path, content);
    const auto log = runtime::MetricsLog::Open(path, 20);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(*ReadFile(path), expected) << run;
  }
  FuzzValues(line, ExitCode::kModel, 1000, [&](const std::string& content) {
    WriteTo(path, content + "\n" + line + "\n");
    const auto log = runtime::MetricsLog::Open(path, 20);
    if (!log.ok()) return log.status();
    const std::string left = *ReadFile(path);
    EXPECT_TRUE(left == line + "\n" || left == content + "\n" + line + "\n");
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace halftone

// What a run reads beside its model, damaged: strategies, op lists, IDX files,
// tensors, manifests of checkpoints, tuning tables.
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"
#include "passes/options/options.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/idx_file.h"
#include "runtime/plan/tuning_table.h"
#include "tests/fuzz/mutator.h"

namespace halftone {
namespace {

// Far above what any takes, sanitizers included: a reader that hangs fails.
constexpr std::chrono::seconds kMost(20);

std::string Scratch() {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/run-files-", getpid());
  std::filesystem::create_directories(path);
  return path;
}

void WriteTo(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// `read(mutation)` gives a Status: OK, or of class `code`.
template <typename Read>
void Fuzz(const std::string& source, bool text, ExitCode code, int mutations,
          const Read& read) {
  ASSERT_TRUE(read(source).ok()) << read(source);
  for (int seed = 0; seed < mutations; ++seed) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = read(Mutator(seed).Mutate(source, text));
    if (!status.ok()) {
      EXPECT_EQ(ExitCodeOf(status), code) << seed << ": " << status;
      EXPECT_NE(status.message(), "") << seed;
    }
    ASSERT_LT(std::chrono::steady_clock::now() - start, kMost) << seed;
  }
}

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

// With a true checksum, so that all of the reader is reached.
TEST(RunFilesFuzzTest, Manifests) {
  const std::string directory = Scratch() + "/ckpt";
  ASSERT_TRUE(runtime::WriteCheckpoint(directory, MakeCheckpoint(), 3).ok());
  const std::string path = directory + "/step-7";
  const std::string body = std::vector<std::string>(
      absl::StrSplit(*ReadFile(path + "/manifest.json"), '\n'))[0];
  Fuzz(body, /*text=*/true, ExitCode::kCheckpoint, 2000,
       [&](const std::string& content) {
         WriteTo(path + "/manifest.json",
                 absl::StrCat(content, "\n", Hex64(StableHash(content)), "\n"));
         return runtime::ReadCheckpoint(path).status();
       });
}

TEST(RunFilesFuzzTest, TuningTables) {
  runtime::TuningTable table;
  table.Set("conv2d f16", {"blocked", 4096, true});
  table.Set("matmul f32", {"plain", 0, false});
  Fuzz(table.Serialize(), /*text=*/true, ExitCode::kModel, 3000,
       [](const std::string& content) {
         return runtime::TuningTable::Parse(content, "fuzz").status();
       });
}

}  // namespace
}  // namespace halftone

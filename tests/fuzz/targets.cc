#include "tests/fuzz/targets.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/dtype.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "graph/import/onnx_import.h"
#include "graph/import/paddle_import.h"
#include "graph/import/paddle_params.h"
#include "graph/io/compiled_model.h"
#include "graph/io/model_reader.h"
#include "graph/text/text.h"
#include "passes/options/options.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/dataset.h"
#include "runtime/data/idx_file.h"
#include "runtime/data/image/image_testing.h"
#include "runtime/data/image/transform.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/npz.h"
#include "runtime/data/tar_testing.h"
#include "runtime/plan/tuning_table.h"
#include "runtime/rendezvous/store_message.h"
#include "runtime/rendezvous/store_state.h"
#include "runtime/report/metrics_log.h"
#include "tests/fuzz/fuzz.h"

namespace halftone {
namespace {

using Seeds = std::vector<std::string>;

constexpr char kReleases[] = "tests/formats/v0.1.0/";

Seeds FileSeed(const std::string& path) { return {ReadFile(path).value()}; }
std::string InScratch(const char* name, const std::string& content) {
  const std::string path = absl::StrCat(Scratch(), "/", name);
  WriteTo(path, content);
  return path;
}

absl::Status ReadModelBytes(const std::string& content) {
  HT_ASSIGN_OR_RETURN(const ModelFile file, ParseModel(content, "fuzz"));
  return BuildProgram(file).status();
}
absl::Status ReadProgramText(const std::string& content) {
  return Parse(content, "fuzz").status();
}
absl::Status ReadCompiled(const std::string& content) {
  return ParseCompiledModel(content, "fuzz", /*target=*/"").status();
}
absl::Status ReadStrategyText(const std::string& content) {
  HT_ASSIGN_OR_RETURN(const passes::StrategyFile file,
                      passes::ParseStrategy(content, "fuzz"));
  return passes::ResolveOptions(file, {}).status();
}
absl::Status ReadOpLists(const std::string& content) {
  const std::string path = InScratch("lists.pbtxt", content);
  HT_ASSIGN_OR_RETURN(
      const passes::StrategyFile file,
      passes::ParseStrategy(
          absl::StrCat("amp { level: 'O1' op_lists: '", path, "' }"), "fuzz"));
  return passes::ResolveOptions(file, {}).status();
}
absl::Status ReadOnnx(const std::string& content) {
  HT_ASSIGN_OR_RETURN(const OnnxFile file, ParseOnnx(content, "fuzz"));
  OnnxOptions options;
  options.name = "fuzz";
  return ImportOnnx(file, options).status();
}
absl::Status ReadPaddle(const std::string& content) {
  HT_ASSIGN_OR_RETURN(const paddle::ProgramDesc program,
                      ParsePaddleProgram(content, "fuzz"));
  PaddleOptions options;
  options.name = "fuzz";
  return ImportPaddle(program, "fuzz", options).status();
}

// ---- Data.

Seeds IdxSeeds() {
  std::string bytes("\0\0\x08\x03\0\0\0\x02\0\0\0\x04\0\0\0\x04", 16);
  return {bytes + std::string(32, '\7')};
}
absl::Status ReadIdxBytes(const std::string& content) {
  return runtime::ParseIdx(content, "fuzz").status();
}
Seeds NpzSeeds() {
  return {
      runtime::SerializeNpz({{"x", DType::kF32, {3, 2}, std::string(24, '\1')},
                             {"y", DType::kI64, {3}, std::string(24, '\0')}})};
}
absl::Status ReadNpzBytes(const std::string& content) {
  return runtime::ParseNpz(content, "fuzz").status();
}
Seeds NpySeeds() {
  return {std::string("\x93NUMPY\x01\x00v\0", 10) +
          "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" +
          std::string(60, ' ') + "\n" + std::string(8, '\0')};
}
absl::Status ReadNpyBytes(const std::string& content) {
  HT_ASSIGN_OR_RETURN(const auto array, runtime::ParseNpy(content, "fuzz"));
  std::string made, note;
  return runtime::ElementsAs(array, DType::kF64, &made, &note).status();
}
Seeds PictureSeeds() {
  const runtime::Image image = runtime::TestImage(9, 7);
  return {runtime::EncodeJpeg(image), runtime::EncodePng(image)};
}
absl::Status ReadPictureBytes(const std::string& content) {
  HT_ASSIGN_OR_RETURN(const auto decoder,
                      runtime::OpenImage(content, "fuzz", runtime::kMaxUnpack));
  if (decoder->width() * decoder->height() > 100000) return absl::OkStatus();
  runtime::Wanted wanted;
  wanted.box = {0, 0, decoder->width(), decoder->height()};
  wanted.channels = 3;
  wanted.least_width = decoder->width();
  wanted.least_height = decoder->height();
  runtime::Image image;
  runtime::RealBox at;
  return decoder->Decode(wanted, &image, &at);
}
absl::Status ReadData(const std::string& source,
                      const std::vector<runtime::FeedSpec>& feeds) {
  return runtime::OpenData(source, feeds, {}).status();
}
Seeds TarSeeds() {
  return {runtime::TarMember("1.png",
                             runtime::EncodePng(runtime::TestImage(5, 4))) +
          runtime::TarMember("1.cls", "8") + runtime::TarEnd()};
}
absl::Status ReadTar(const std::string& content) {
  std::string mended = content;
  runtime::FixTarSums(&mended);
  return ReadData(
      "tar:" + InScratch("shard.tar", mended),
      {{"image", DType::kU8, {3, 4, 4}}, {"label", DType::kI64, {}, 9}});
}
Seeds TokenSeeds() { return {std::string(202, '\1')}; }
absl::Status ReadTokens(const std::string& content) {
  return ReadData(
      "tokens:" + InScratch("train.bin", content),
      {{"input_ids", DType::kI64, {4}}, {"label", DType::kI64, {4}, 300}});
}

// ---- Of a run.

Seeds TensorSeeds() {
  return FileSeed(absl::StrCat(kReleases, "parameters.safetensors"));
}
absl::Status ReadTensors(const std::string& content) {
  return runtime::ParseSafetensors(content, "fuzz").status();
}
// A manifest's line; its checksum is made true, so that all is reached.
Seeds ManifestSeeds() {
  const std::string text =
      ReadFile(absl::StrCat(kReleases, "run/ckpt/step-8/manifest.json"))
          .value();
  return {text.substr(0, text.find('\n'))};
}
absl::Status ReadManifest(const std::string& line) {
  const std::string step = Scratch() + "/step-8";
  std::error_code error;
  std::filesystem::create_directories(step, error);
  std::filesystem::copy(
      absl::StrCat(kReleases, "run/ckpt/step-8/state.safetensors"),
      step + "/state.safetensors", std::filesystem::copy_options::skip_existing,
      error);
  WriteTo(step + "/manifest.json",
          absl::StrCat(line, "\n", Hex64(StableHash(line)), "\n"));
  return runtime::ReadCheckpoint(step).status();
}
Seeds TableSeeds() {
  return {
      "{\"schema\":1,\"device\":\"a CPU\",\"entries\":[\n"
      "{\"candidate\":\"plain\",\"deterministic\":true,"
      "\"op\":\"matmul\",\"workspace_bytes\":0}\n]}\n"};
}
absl::Status ReadTable(const std::string& content) {
  return runtime::TuningTable::Parse(content, "fuzz").status();
}
absl::Status ReadMetrics(const std::string& content) {
  return runtime::MetricsLog::Open(InScratch("metrics.jsonl", content), 4)
      .status();
}

// ---- What peers send: requests of a client, one after the other.

Seeds PeerSeeds() {
  const auto request = [](runtime::StoreRequest kind) {
    return runtime::MessageWriter().U8(static_cast<uint8_t>(kind));
  };
  runtime::MessageWriter hello = request(runtime::StoreRequest::kHello);
  hello.I64(0).I64(1).I64(0).U8(1).Text("pid 1").Text(std::string(16, 'n'));
  hello.Text(runtime::ClientProof("secret", std::string(16, 's'),
                                  std::string(16, 'n'), 0));
  runtime::MessageWriter set = request(runtime::StoreRequest::kSet);
  set.Text("key").Text("value");
  runtime::MessageWriter add = request(runtime::StoreRequest::kAdd);
  add.Text("count").I64(1);
  return {hello.Frame() + set.Frame() + add.Frame() +
          request(runtime::StoreRequest::kBye).Frame()};
}
// Whatever it sends: nobody is admitted who did not send the one proof.
absl::Status ReadRequests(const std::string& content) {
  runtime::StoreServerOptions options;
  options.world_size = 1;
  options.token = "secret";
  runtime::StoreState state(options);
  runtime::StoreClientState client;
  client.server_nonce = std::string(16, 's');
  absl::string_view rest = content;
  while (rest.size() >= 4) {
    const int64_t length = runtime::FrameLength(rest);
    if (length > static_cast<int64_t>(rest.size()) - 4) break;
    const auto reply =
        state.Handle(client, rest.substr(4, static_cast<size_t>(length)));
    rest.remove_prefix(static_cast<size_t>(length) + 4);
    if (!reply.has_value()) break;
  }
  state.Ended(client);
  return absl::OkStatus();
}

constexpr ExitCode kModel = ExitCode::kModel;

constexpr FuzzTarget kTargets[] = {
    {"model_text", true, kModel,
     [] { return FileSeed("models/small_resnet.pbtxt"); }, ReadModelBytes},
    {"model_binary", false, kModel,
     [] { return FileSeed(absl::StrCat(kReleases, "model.pb")); },
     ReadModelBytes},
    {"program", true, kModel,
     [] { return FileSeed(absl::StrCat(kReleases, "model.ht")); },
     ReadProgramText},
    {"compiled_model", false, kModel,
     [] { return FileSeed(absl::StrCat(kReleases, "model.htc")); },
     ReadCompiled},
    {"strategy", true, kModel, [] { return FileSeed("models/mnist_o1.pbtxt"); },
     ReadStrategyText},
    {"op_lists", true, kModel,
     [] { return FileSeed(absl::StrCat(kReleases, "op_lists.pbtxt")); },
     ReadOpLists},
    {"onnx", false, kModel,
     [] { return FileSeed("tests/cli/onnx/small.onnx"); }, ReadOnnx},
    {"paddle_program", false, kModel,
     [] { return FileSeed("tests/cli/paddle/small.pdmodel"); }, ReadPaddle},
    {"idx", false, kModel, IdxSeeds, ReadIdxBytes},
    {"npz", false, kModel, NpzSeeds, ReadNpzBytes},
    {"npy", true, kModel, NpySeeds, ReadNpyBytes},
    {"picture", false, kModel, PictureSeeds, ReadPictureBytes},
    {"tar", false, kModel, TarSeeds, ReadTar},
    {"tokens", false, kModel, TokenSeeds, ReadTokens},
    {"safetensors", false, kModel, TensorSeeds, ReadTensors},
    {"manifest", true, ExitCode::kCheckpoint, ManifestSeeds, ReadManifest},
    {"tuning_table", true, kModel, TableSeeds, ReadTable},
    {"metrics", true, kModel,
     [] { return FileSeed(absl::StrCat(kReleases, "run/metrics.jsonl")); },
     ReadMetrics},
    {"store_requests", false, ExitCode::kCommunication, PeerSeeds,
     ReadRequests},
};

}  // namespace

absl::Span<const FuzzTarget> FuzzTargets() { return kTargets; }

const FuzzTarget* FindFuzzTarget(absl::string_view name) {
  const auto* found = std::find_if(
      std::begin(kTargets), std::end(kTargets),
      [&](const FuzzTarget& target) { return target.name == name; });
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace halftone

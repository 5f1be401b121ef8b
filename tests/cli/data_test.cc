// Pictures and tokens from files: trained on by any number of ranks and
// workers, evaluated, resumed; halftone data.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/data/image/image_testing.h"
#include "runtime/data/npz_testing.h"
#include "tests/support/child.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

Result Halftone(Words arguments, const Words& more = {}) {
  arguments.insert(arguments.begin(), "tools/halftone");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram(arguments);
}

// A net for pictures of 16 x 16.
constexpr char kModel[] = R"(
  format: 1
  name: "two"
  feed { name: "image" dtype: U8 dims: [-1, 3, 16, 16] }
  feed { name: "label" dtype: I64 dims: [-1] }
  param { name: "w" dtype: F32 dims: [768, 2] init { normal { std: 0.01 } } }
  op { type: "image_normalize" in { slot: "X" var: "image" }
       out { slot: "Out" var: "x" }
       attr { name: "mean" floats: [128, 128, 128] }
       attr { name: "std" floats: [64, 64, 64] } }
  op { type: "flatten" in { slot: "X" var: "x" } out { slot: "Out" var: "f" } }
  op { type: "matmul" in { slot: "X" var: "f" } in { slot: "Y" var: "w" }
       out { slot: "Out" var: "logits" } }
  op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" }
       in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
  op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
  loss { var: "loss" mean_over: "ce" }
  output: "logits"
)";

constexpr char kStrategy[] = R"(
  optimizer { sgd {} }
  lr { base: 0.05 }
  train { batch_size: 8 epochs: 3 seed: 3
          augment { random_resized_crop { scale_min: 0.3 } horizontal_flip: 0.5
                    color_jitter { brightness: 0.2 saturation: 0.2 } } }
)";

class DataTest : public ::testing::Test {
 protected:
  DataTest() : root_(absl::StrCat(::testing::TempDir(), "/data.", getpid())) {
    fs::remove_all(root_);
    Write("model.pbtxt", kModel);
    Write("strategy.pbtxt", kStrategy);
    // Bright and dark.
    for (int i = 0; i < 12; ++i) {
      const runtime::Image bright = Shade(200 + i), dark = Shade(60 - i);
      Write(absl::StrCat("p/train/bright/", i, ".jpg"),
            runtime::EncodeJpeg(bright));
      Write(absl::StrCat("p/train/dark/", i, ".png"), runtime::EncodePng(dark));
      if (i >= 3) continue;
      Write(absl::StrCat("p/val/bright/", i, ".png"),
            runtime::EncodePng(bright));
      Write(absl::StrCat("p/val/dark/", i, ".jpg"), runtime::EncodeJpeg(dark));
    }
  }
  ~DataTest() override { fs::remove_all(root_); }

  static runtime::Image Shade(int level) {
    runtime::Image image = runtime::TestImage(40, 28);
    for (uint8_t& pixel : image.pixels) {
      pixel = static_cast<uint8_t>((pixel + 3 * level) / 4);
    }
    return image;
  }
  void Write(const std::string& name, const std::string& content) {
    const std::string path = root_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  }
  Words Training(const std::string& out) {
    return {"run",        root_ + "/model.pbtxt",
            "--strategy", root_ + "/strategy.pbtxt",
            "--data",     "imagefolder:" + root_ + "/p",
            "--out",      root_ + "/" + out};
  }
  std::string Parameters(const std::string& out) {
    const std::string file = root_ + "/" + out + ".safetensors";
    const Result result = Halftone({"export", root_ + "/" + out, "-o", file});
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    const auto content = ReadFile(file);
    EXPECT_TRUE(content.ok()) << content.status();
    return content.ok() ? *content : "";
  }

  const std::string root_;
};

TEST_F(DataTest, TrainsOnAFolder) {
  const Result run = Halftone(Training("run"));
  ASSERT_EQ(run.exit_code(), 0) << run.err;
  EXPECT_THAT(run.out + run.err, HasSubstr("24 train, 6 test; batch 8"));
  const Result eval = Halftone({"eval", root_ + "/run", "--data",
                                "imagefolder:" + root_ + "/p", "--json"});
  ASSERT_EQ(eval.exit_code(), 0) << eval.err;
  EXPECT_LT(json::parse(eval.out)["loss"], 0.2);
  // What is bright is called so.
  const Words predict = {"predict", root_ + "/run", "--data",
                         "imagefolder:" + root_ + "/p"};
  const Result text = Halftone(predict, {"--top", "1"});
  ASSERT_EQ(text.exit_code(), 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("class and probability, the best 1\n"));
  EXPECT_THAT(text.out, HasSubstr("\n0  bright 1\n"));
  EXPECT_THAT(text.out, HasSubstr("\n5  dark 1\n"));
  const Result lines = Halftone(predict, {"--json"});
  ASSERT_EQ(lines.exit_code(), 0) << lines.err;
  EXPECT_EQ(json::parse(lines.out)["outputs"][0]["best"][5]["names"],
            json({"dark", "bright"}));
}

TEST_F(DataTest, ClassesWhoseNamesAreNotUtf8) {
  fs::rename(root_ + "/p/train/dark", root_ + "/p/train/d\xe9");
  fs::rename(root_ + "/p/val/dark", root_ + "/p/val/d\xe9");
  const Result run = Halftone(Training("run"));
  ASSERT_EQ(run.exit_code(), 0) << run.err;
  const Words predict = {"predict", root_ + "/run", "--data",
                         "imagefolder:" + root_ + "/p"};
  EXPECT_THAT(Halftone(predict).out, HasSubstr("3  d\\xe9 1  bright "));
  const Result lines = Halftone(predict, {"--json"});
  ASSERT_EQ(lines.exit_code(), 0) << lines.err;
  EXPECT_TRUE(json::accept(lines.out));
  // Two of them are two.
  Write("p/train/d\xe8/0.png", runtime::EncodePng(Shade(9)));
  const Result verify =
      Halftone({"data", "verify", "imagefolder:" + root_ + "/p", "--json"});
  const json classes = json::parse(verify.out)["train"]["classes"];
  EXPECT_EQ(classes["d\\xe9"], 12) << verify.out;
  EXPECT_EQ(classes["d\\xe8"], 1);
}

// Every pixel is a function of (seed, epoch, sample).
TEST_F(DataTest, WorkersAndResumedRunsSeeTheSamePixels) {
  ASSERT_EQ(Halftone(Training("one")).exit_code(), 0);
  ASSERT_EQ(Halftone(Training("four"), {"--workers", "4"}).exit_code(), 0);
  EXPECT_EQ(Parameters("four"), Parameters("one"));
  // Two ranks see them too: the sums are of other parts.
  const Result two = Halftone(Training("two"), {"--ranks", "2", "--json"});
  ASSERT_EQ(two.exit_code(), 0) << two.err;
  const Result again =
      Halftone(Training("again"), {"--ranks", "2", "--workers", "3", "--json"});
  ASSERT_EQ(again.exit_code(), 0) << again.err;
  EXPECT_EQ(Parameters("again"), Parameters("two"));
  const Result one = Halftone(Training("one-json"), {"--json"});
  EXPECT_NEAR(json::parse(two.out)["loss_last"],
              json::parse(one.out)["loss_last"], 1e-5);
  // As if it had been killed in the second epoch.
  ASSERT_EQ(
      Halftone(Training("cut"), {"--checkpoint-every", "4", "--keep", "9"})
          .exit_code(),
      0);
  for (const auto& entry : fs::directory_iterator(root_ + "/cut/ckpt")) {
    if (entry.path().filename() != "step-4") fs::remove_all(entry.path());
  }
  ASSERT_TRUE(fs::exists(root_ + "/cut/ckpt/step-4"));
  const Result resumed =
      Halftone(Training("cut"), {"--resume", "--workers", "2"});
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.out + resumed.err, HasSubstr("bit for bit"));
  EXPECT_EQ(Parameters("cut"), Parameters("one"));
}

TEST_F(DataTest, VerifyNamesBrokenPictures) {
  const std::string source = "imagefolder:" + root_ + "/p";
  const Result good = Halftone({"data", "verify", source});
  EXPECT_EQ(good.exit_code(), 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("train    24 pictures in 2 classes, 40x28"));
  EXPECT_THAT(good.out, HasSubstr("  bright  12\n"));
  Write("p/train/dark/zz.jpg", "not a picture");
  const Result bad = Halftone({"data", "verify", source, "--json"});
  EXPECT_EQ(bad.exit_code(), 3);
  const json said = json::parse(bad.out);
  EXPECT_EQ(said["schema"], 1);
  EXPECT_EQ(said["train"]["classes"]["dark"], 12);
  EXPECT_EQ(said["train"]["broken"].size(), 1u);
  EXPECT_EQ(said["val"]["broken"].size(), 0u);
  // So are those that cannot be read at all.
  const std::string gone = root_ + "/p/train/bright/aa.png";
  fs::create_symlink(root_ + "/gone", gone);
  const json all =
      json::parse(Halftone({"data", "verify", source, "--json"}).out);
  EXPECT_THAT(all["train"]["broken"].dump(),
              AllOf(HasSubstr("aa.png: cannot open"), HasSubstr("zz.jpg")));
  fs::remove(gone);
  // A run ends with it, or leaves it out.
  const Result run = Halftone(Training("run"));
  EXPECT_EQ(run.exit_code(), 1);
  EXPECT_THAT(run.err, HasSubstr("dark/zz.jpg: expected a JPEG or PNG"));
  const Result skip =
      Halftone(Training("skip"), {"--set", "train.broken_samples=skip"});
  EXPECT_EQ(skip.exit_code(), 0) << skip.err;
  EXPECT_THAT(skip.out + skip.err, HasSubstr("24 train, 6 test"));
  EXPECT_THAT(skip.out + skip.err, HasSubstr("1 broken of 25 in train"));
}

TEST_F(DataTest, Bench) {
  const Result bench =
      Halftone({"data", "bench", "imagefolder:" + root_ + "/p",
                root_ + "/model.pbtxt", "--strategy", root_ + "/strategy.pbtxt",
                "--seconds", "0.1", "--workers", "2", "--json"});
  ASSERT_EQ(bench.exit_code(), 0) << bench.err;
  const json said = json::parse(bench.out);
  EXPECT_EQ(said["schema"], 1);
  ASSERT_EQ(said["read"].size(), 2u);
  EXPECT_GT(said["read"][1]["samples"], 0);
  // Without a strategy, as the example of its help has it.
  const Result plain =
      Halftone({"data", "bench", "imagefolder:" + root_ + "/p",
                root_ + "/model.pbtxt", "--seconds", "0.1", "--workers", "1"});
  EXPECT_EQ(plain.exit_code(), 0) << plain.err;
}

TEST_F(DataTest, VerifyOfWhatIsNoPicture) {
  const Result idx = Halftone({"data", "verify", "idx:models/digits"});
  EXPECT_EQ(idx.exit_code(), 0) << idx.err;
  EXPECT_THAT(idx.out, HasSubstr("t10k     images 8x8, images 359, least label "
                                 "0, largest label 9\n"));
  Write("t/train.bin", std::string("\1\0\7\1\2\0", 6));
  Write("t/val.bin", std::string("\3\0", 2));
  const Result tokens = Halftone(
      {"data", "verify", "tokens:" + root_ + "/t/train.bin", "--json"});
  EXPECT_EQ(tokens.exit_code(), 0) << tokens.err;
  const json said = json::parse(tokens.out);
  EXPECT_EQ(said["train"]["tokens"], 3);
  EXPECT_EQ(said["train"]["largest"], 263);
  EXPECT_EQ(said["train"]["largest_at"], 1);
  EXPECT_EQ(said["val"]["largest"], 3);
  EXPECT_EQ(said["schema"], 1);
  // Arrays are called what they are called.
  const std::string array = runtime::NpyFile{"|u1", "2,", "ab"}.Serialize();
  runtime::ZipFile zip;
  for (const char* name : {"data", "schema", "d\xe9", "d\xe8"}) {
    zip.members.push_back({absl::StrCat(name, ".npy"), array});
  }
  Write("a.npz", zip.Serialize());
  const Result arrays =
      Halftone({"data", "verify", "npz:" + root_ + "/a.npz", "--json"});
  ASSERT_EQ(arrays.exit_code(), 0) << arrays.err;
  const json of = json::parse(arrays.out);
  EXPECT_EQ(of["schema"], 1);
  EXPECT_EQ(of["arrays"]["data"]["bytes"], 2);
  EXPECT_EQ(of["arrays"]["schema"]["bytes"], 2);
  EXPECT_EQ(of["arrays"].size(), 4u) << arrays.out;
  const Result wrong = Halftone({"data", "verify", "synthetic:3"});
  EXPECT_EQ(wrong.exit_code(), 2);
  EXPECT_THAT(wrong.err, HasSubstr("nothing to verify"));
}

// A block of tokens is a sample, whatever it has of labels.
TEST_F(DataTest, EvalCountsSamples) {
  Write("lm.pbtxt", R"(
    format: 1
    feed { name: "input_ids" dtype: I64 dims: [-1, 4] }
    feed { name: "label" dtype: I64 dims: [-1, 4] }
    param { name: "emb" dims: [8, 8] init { normal { std: 0.1 } } }
    op { type: "lookup_table_v2" in { slot: "W" var: "emb" }
         in { slot: "Ids" var: "input_ids" } out { slot: "Out" var: "e" } }
    op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "e" }
         in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
    op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "l" } }
    loss { var: "l" mean_over: "ce" }
  )");
  Write("t/train.bin", std::string(34, '\0'));
  Write("t/val.bin", std::string(26, '\0'));
  const std::string data = "tokens:" + root_ + "/t/train.bin";
  const Result run =
      Halftone({"run", root_ + "/lm.pbtxt", "--data", data, "--set",
                "optimizer.sgd=", "--batch-size", "2", "--out", root_ + "/lm"});
  ASSERT_EQ(run.exit_code(), 0) << run.err;
  const Result eval =
      Halftone({"eval", root_ + "/lm", "--data", data, "--json"});
  ASSERT_EQ(eval.exit_code(), 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out)["samples"], 3);
}

TEST_F(DataTest, EvalOfALossThatIsNoNumber) {
  const std::string header =
      R"({"w":{"data_offsets":[0,6144],"dtype":"F32","shape":[768,2]}})";
  std::string tensors(8, '\0');
  tensors[0] = static_cast<char>(header.size());
  tensors += header;
  for (int i = 0; i < 768 * 2; ++i) tensors.append("\0\0\xc0\x7f", 4);
  Write("nan.safetensors", tensors);
  const Result eval = Halftone({"eval", root_ + "/model.pbtxt", "--init",
                                root_ + "/nan.safetensors", "--data",
                                "imagefolder:" + root_ + "/p", "--json"});
  ASSERT_EQ(eval.exit_code(), 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out)["loss"], "nan");
}

// What is said of pictures is told of other data, and is no difference to what
// went before.
TEST_F(DataTest, OtherDataIsNotAugmented) {
  const Words training = {"run",          "models/mlp.pbtxt",
                          "--data",       "idx:models/digits",
                          "--set",        "optimizer.sgd=",
                          "--out",        root_ + "/idx",
                          "--batch-size", "64",
                          "--set",        "train.broken_samples=skip",
                          "--set",        "train.augment.horizontal_flip=0.5"};
  const Result first =
      Halftone(training, {"--set", "train.augment.color_jitter.contrast=0.5"});
  ASSERT_EQ(first.exit_code(), 0) << first.err;
  EXPECT_THAT(
      first.err + first.out,
      HasSubstr("note     train.augment.horizontal_flip, "
                "train.augment.color_jitter, train.broken_samples: no effect "
                "on idx data, only on imagefolder, filelist, tar\n"));
  const Result resumed = Halftone(training, {"--epochs", "2", "--resume"});
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err;
  EXPECT_THAT(resumed.err + resumed.out, HasSubstr(": bit for bit\n"));
  // A default is none.
  const Result plain =
      Halftone({"run", "models/mlp.pbtxt", "--data", "idx:models/digits",
                "--set", "optimizer.sgd=", "--batch-size", "64"},
               {"--set", "train.augment.cutout=0"});
  EXPECT_EQ(plain.exit_code(), 0) << plain.err;
  EXPECT_THAT(plain.err + plain.out, Not(HasSubstr("no effect")));
}

// Labels mean what they meant in training, or there is an error.
TEST_F(DataTest, EvalOnOtherClasses) {
  ASSERT_EQ(Halftone(Training("run")).exit_code(), 0);
  const auto eval = [&](const std::string& place) {
    return Halftone(
        {"eval", root_ + "/run", "--data", "imagefolder:" + root_ + place});
  };
  const Result whole = eval("/p"), alone = eval("/p/val");
  EXPECT_EQ(whole.exit_code(), 0) << whole.err;
  EXPECT_EQ(alone.out, whole.out);
  fs::remove_all(root_ + "/p/val/bright");
  EXPECT_EQ(eval("/p").exit_code(), 0);
  const Result less = eval("/p/val");
  EXPECT_EQ(less.exit_code(), 1);
  EXPECT_THAT(less.err,
              HasSubstr("class 0 is dark, where the parameters were trained "
                        "it was bright"));
}

// Every process reads a part and hears of the rest.
TEST_F(DataTest, BrokenPicturesOfLaunchedRanks) {
  for (const char* name : {"bright/a.jpg", "bright/b.jpg", "dark/0a.png"}) {
    Write(absl::StrCat("p/train/", name), "not a picture");
  }
  const Words skip = {"--set", "train.broken_samples=skip"};
  const Result one = Halftone(Training("one"), skip);
  ASSERT_EQ(one.exit_code(), 0) << one.err;
  Words launched = {"launch", "--ranks", "2"};
  const Words training = Training("two");
  launched.insert(launched.end(), training.begin(), training.end());
  const Result two = Halftone(launched, skip);
  ASSERT_EQ(two.exit_code(), 0) << two.err;
  for (const Result* const result : {&one, &two}) {
    const std::string all = result->out + result->err;
    EXPECT_THAT(all, HasSubstr("24 train, 6 test"));
    EXPECT_THAT(all, HasSubstr("3 broken of 27 in train left out"));
    EXPECT_THAT(all, HasSubstr("3 broken samples left out\n"));
  }
  const json summary = json::parse(*ReadFile(root_ + "/two/summary.json"));
  EXPECT_EQ(summary["samples_left_out"], 3);
}

// Between two parts of a run, and within one.
TEST_F(DataTest, FoldersThatChange) {
  Words training = Training("run");
  training.insert(training.end(), {"--checkpoint-every", "4", "--keep", "9"});
  ASSERT_EQ(Halftone(training).exit_code(), 0);
  fs::remove_all(root_ + "/run/ckpt/step-9");
  fs::rename(root_ + "/p/train/dark/3.png", root_ + "/p/train/dark/y.png");
  const Result renamed = Halftone(Training("run"), {"--resume"});
  EXPECT_EQ(renamed.exit_code(), 8) << renamed.err;
  EXPECT_THAT(renamed.err, HasSubstr("trained on 24 samples, now there are 24: "
                                     "the first that differs is"));
  EXPECT_THAT(renamed.err, HasSubstr("p/train/dark/4.png"));
  fs::rename(root_ + "/p/train/dark/y.png", root_ + "/p/train/dark/3.png");
  Write("p/train/bright/new.jpg", runtime::EncodeJpeg(Shade(200)));
  const Result more = Halftone(Training("run"), {"--resume"});
  EXPECT_EQ(more.exit_code(), 8) << more.err;
  EXPECT_THAT(more.err,
              HasSubstr("now there are 25: the first that differs is "));
  EXPECT_THAT(more.err, HasSubstr("bright/new.jpg"));
  fs::remove(root_ + "/p/train/bright/new.jpg");
  const Result same = Halftone(Training("run"), {"--resume"});
  EXPECT_EQ(same.exit_code(), 0) << same.err;
}

}  // namespace
}  // namespace halftone

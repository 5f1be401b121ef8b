// Compiled models (.htc) that are damaged, newer, or for another device, and
// the tuning tables beside them.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "gtest/gtest.h"
#include "proto/compiled_model.pb.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using Parts = std::vector<std::string>;

// Every verb that reads one says the same; those that write leave nothing.
void ExpectNoVerbTakes(const std::string& model, const Parts& says) {
  ExpectRefusedAndNothingWritten({"run", model, "--data", kDigits}, "--out", 1,
                                 says);
  ExpectRefusedAndNothingWritten({"compile", model}, "-o", 1, says);
  ExpectRefused({"inspect", model}, 1, says);
  ExpectRefused({"diff", model, Convnet()}, 1, says);
}

// The compiled convnet after `edit`, with a true checksum.
template <typename Edit>
std::string Edited(const Edit& edit) {
  proto::CompiledModel message;
  EXPECT_TRUE(message.ParseFromString(ReadAll(Convnet())));
  message.clear_checksum();
  edit(message);
  const std::string bytes = message.SerializeAsString();
  proto::CompiledModel tail;
  tail.set_checksum(StableHash(bytes));
  return WriteNew("m.htc", bytes + tail.SerializeAsString());
}

TEST(CompiledModelFile, ThatIsDamaged) {
  const std::string good = ReadAll(Convnet());
  for (const Damage& damage : AllDamages(good)) {
    SCOPED_TRACE(damage.name);
    const std::string model = Scratch() + "/m.htc";
    if (!damage.missing) WriteTo(model, damage.content);
    const bool begins_well = damage.content.substr(0, 20) == good.substr(0, 20);
    ExpectNoVerbTakes(
        model,
        {model, damage.missing ? "cannot open"
                : begins_well  ? "truncated or damaged: its checksum is not "
                                 "that of its content; compile it again: "
                                 "halftone compile"
                               : "expected a model"});
  }
}

// The program (field 6) or a feature (field 3), 1 GB long, in 60 bytes.
TEST(CompiledModelFile, ThatClaimsAGigabyte) {
  const std::string begin = ReadAll(Convnet()).substr(0, 27);
  for (const char tag : {'\x32', '\x1a'}) {
    const std::string claim = std::string(1, tag) + "\x80\x80\x80\x80\x04";
    ExpectNoVerbTakes(
        WriteNew("m.htc", begin + claim + std::string(27, 'x')),
        {"truncated or damaged", "compile it again: halftone compile"});
  }
}

TEST(CompiledModelFile, OfANewerVersion) {
  ExpectNoVerbTakes(
      Edited([](proto::CompiledModel& m) {
        m.set_format_version(9);
        m.set_producer("halftone 7.0");
      }),
      {"expected format version 3 or the one before, found 9",
       "written by a newer version (halftone 7.0) than this halftone",
       "compile it again: halftone compile models/mnist_convnet.pbtxt"});
  ExpectNoVerbTakes(
      Edited([](proto::CompiledModel& m) {
        m.add_required_features("sharded_cells");
      }),
      {"it needs the feature \"sharded_cells\"", "compile it again"});
  ExpectNoVerbTakes(Edited([](proto::CompiledModel& m) {
                      m.mutable_op_version(0)->set_version(7);
                    }),
                    {"it uses version 7 of op", "compile it again"});
}

// What `tune` wrote beside a model: damaged, it stops a run of that model.
TEST(TuningTableFile, ThatIsDamaged) {
  const std::string model = WriteNew("m.htc", ReadAll(Convnet()));
  ASSERT_EQ(
      Halftone({"tune", model, "--runs", "1", "--batch", "8"}).exit_code(), 0);
  const std::string table = model.substr(0, model.size() - 4) + ".tuning.json";
  const std::string good = ReadAll(table);
  std::vector<Damage> damages = AllDamages(good);
  damages.push_back({"of_another_schema", "{\"schema\":3,\"entries\":[]}"});
  damages.push_back({"a_model", ReadAll(model)});
  for (const Damage& damage : damages) {
    if (damage.missing) continue;
    SCOPED_TRACE(damage.name);
    WriteTo(table, damage.content);
    ExpectRefusedAndNothingWritten(
        {"run", model, "--data", kDigits}, "--out", 1,
        {table, "not a tuning table: ", "delete it: it is made again"});
  }
}

// It can be looked at and compiled again, but nothing runs it here.
TEST(CompiledModelFile, ForAnotherTarget) {
  const std::string model =
      Edited([](proto::CompiledModel& m) { m.set_target("sm_90"); });
  const Parts says = {
      absl::StrCat(model,
                   ": expected a model compiled for cpu, found one for "
                   "sm_90; compile it again: halftone compile ",
                   model, " --target cpu")};
  ExpectRefusedAndNothingWritten({"run", model, "--data", kDigits}, "--out", 1,
                                 says);
  const Result inspected = Halftone({"inspect", model});
  EXPECT_EQ(inspected.exit_code(), 0) << inspected.err;
  const std::string tensors = Scratch() + "/x.safetensors";
  WriteTo(tensors, "");
  ExpectRefused({"eval", model, "--init", tensors, "--data", kDigits}, 1, says);
  // What the message says to do helps.
  ASSERT_EQ(
      Halftone({"compile", model, "--target", "cpu", "-o", model}).exit_code(),
      0);
  const Result run =
      Halftone({"run", model, "--data", kDigits, "--epochs", "1"});
  EXPECT_EQ(run.exit_code(), 0) << run.err;
}

}  // namespace
}  // namespace halftone

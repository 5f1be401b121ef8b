#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/log/console.h"
#include "runtime/log/event_file.h"

namespace halftone {
namespace runtime {
namespace {

std::string NewPath() {
  static int paths = 0;
  return absl::StrCat(::testing::TempDir(), "/log-", getpid(), "-", paths++);
}

// The records of an event file, as their readers take them apart.
std::vector<std::string> Records(const std::string& bytes) {
  std::vector<std::string> records;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, &bytes[at], sizeof(length));
    records.push_back(bytes.substr(at + 12, length));
    at += 12 + length + 4;
    EXPECT_LE(at, bytes.size());
  }
  return records;
}

TEST(EventFile, HoldsScalars) {
  const std::string directory = NewPath();
  auto file = EventFile::Create(directory);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->AddScalar("loss", 300, 1.5f);
  ASSERT_TRUE((*file)->Flush().ok());
  const auto entry = *std::filesystem::directory_iterator(directory);
  EXPECT_EQ(entry.path().filename().string().rfind("events.out.tfevents.", 0),
            0u);
  const std::string bytes = *ReadFile(entry.path());
  const std::vector<std::string> records = Records(bytes);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");
  // step 300; summary { value { tag: "loss" simple_value: 1.5 } }
  EXPECT_EQ(records[1].substr(9),
            std::string("\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15"
                        "\x00\x00\xc0\x3f",
                        18));
  // The masked CRC-32C of the length 24 of the first record.
  EXPECT_EQ(bytes.substr(8, 4), std::string("\xa3\x7f\x4b\x22", 4));
}

TEST(EventFile, TwoOfOneSecondAreTwoFiles) {
  const std::string directory = NewPath();
  auto first = EventFile::Create(directory),
       second = EventFile::Create(directory);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}),
            2);
}

std::string Shown(int columns) {
  std::FILE* out = std::tmpfile();
  std::FILE* err = std::tmpfile();
  Console console(out, err, columns);
  console.Progress("step 1");
  console.Progress("step 22222222");
  console.Message("skipped");
  console.Report("done");
  std::string text(1000, '\0');
  std::rewind(err);
  text.resize(std::fread(&text[0], 1, text.size(), err));
  std::fclose(out);
  std::fclose(err);
  return text;
}

TEST(Console, RewritesTheProgressLineOnATerminalAlone) {
  EXPECT_EQ(Shown(0), "step 1\nstep 22222222\nskipped\n");
  EXPECT_EQ(Shown(10), "\r\033[Kstep 1\r\033[Kstep 2222\nskipped\n");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

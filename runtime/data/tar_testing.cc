#include "runtime/data/tar_testing.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kBlock = 512, kSum = 148, kSumBytes = 8, kMagic = 257;

void FixSum(char* header) {
  unsigned sum = kSumBytes * ' ';
  for (size_t i = 0; i < kBlock; ++i) {
    if (i < kSum || i >= kSum + kSumBytes)
      sum += static_cast<uint8_t>(header[i]);
  }
  const std::string text = absl::StrFormat("%06o", sum) + std::string("\0 ", 2);
  text.copy(header + kSum, kSumBytes);
}

}  // namespace

std::string TarMember(const std::string& name, const std::string& content,
                      char type) {
  std::string header(kBlock, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  header.replace(124, 11, absl::StrFormat("%011o", content.size()));
  header.replace(136, 11, "00000000000");
  header[156] = type;
  header.replace(kMagic, 5, "ustar");
  header.replace(263, 2, "00");
  FixSum(header.data());
  std::string padded = content;
  padded.resize((content.size() + kBlock - 1) / kBlock * kBlock);
  return header + padded;
}

std::string TarEnd() { return std::string(2 * kBlock, '\0'); }

void FixTarSums(std::string* archive) {
  for (size_t at = 0; at + kBlock <= archive->size(); at += kBlock) {
    if (archive->compare(at + kMagic, 5, "ustar") == 0) {
      FixSum(archive->data() + at);
    }
  }
}

}  // namespace runtime
}  // namespace halftone

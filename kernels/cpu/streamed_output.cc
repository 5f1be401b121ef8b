#include "kernels/cpu/streamed_output.h"

#include <cstring>
#include <fstream>

#include "kernels/cpu/isa.h"

#ifdef HT_ISA_X86
#include <immintrin.h>
#endif

namespace halftone {
namespace kernels {
namespace {

constexpr int64_t kLine = 64;

// Of the cache that this machine's first core shares with its neighbours:
// sysconf's number may be that of all of a socket's.
int64_t LastLevelCacheBytes() {
  constexpr int64_t kUsual = int64_t{32} << 20;
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kibibytes = 0;
  return file >> kibibytes && kibibytes > 0 ? kibibytes << 10 : kUsual;
}

int64_t& Least() {
  static int64_t bytes = LastLevelCacheBytes() / 4 * 3;
  return bytes;
}

#ifdef HT_ISA_X86
void StreamLines(const char* from, char* to, int64_t lines) {
  for (int64_t i = 0; i < lines * kLine; i += sizeof(__m128i)) {
    _mm_stream_si128(
        reinterpret_cast<__m128i*>(to + i),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
}
HT_TARGET_AVX2 void StreamLinesAvx2(const char* from, char* to, int64_t lines) {
  for (int64_t i = 0; i < lines * kLine; i += sizeof(__m256i)) {
    _mm256_stream_si256(
        reinterpret_cast<__m256i*>(to + i),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
}
HT_TARGET_AVX512 void StreamLinesAvx512(const char* from, char* to,
                                        int64_t lines) {
  for (int64_t i = 0; i < lines * kLine; i += sizeof(__m512i)) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i),
                        _mm512_loadu_si512(from + i));
  }
}
#endif

}  // namespace

int64_t LeastStreamedBytes() { return Least(); }
void SetLeastStreamedBytes(int64_t bytes) { Least() = bytes; }

void StreamBytes(const void* from, void* to, int64_t bytes) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
#ifdef HT_ISA_X86
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) %
                                         static_cast<uintptr_t>(kLine));
  const int64_t head = std::min(bytes, past == 0 ? 0 : kLine - past);
  std::memcpy(target, source, head);
  source += head;
  target += head;
  const int64_t lines = (bytes - head) / kLine;
  switch (HostIsa()) {
    case Isa::kAvx512:
      StreamLinesAvx512(source, target, lines);
      break;
    case Isa::kAvx2:
      StreamLinesAvx2(source, target, lines);
      break;
    case Isa::kBaseline:
      StreamLines(source, target, lines);
      break;
  }
  source += lines * kLine;
  target += lines * kLine;
  bytes -= head + lines * kLine;
#endif
  std::memcpy(target, source, bytes);
}

void FinishStores() {
#ifdef HT_ISA_X86
  _mm_sfence();
#endif
}

}  // namespace kernels
}  // namespace halftone

#include "runtime/data/image/image_testing.h"

// libjpeg's headers take the first one for granted.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <png.h>
// clang-format on

#include <cstdlib>
#include <map>
#include <vector>

namespace halftone {
namespace runtime {

Image TestImage(int64_t width, int64_t height, int channels) {
  Image image;
  image.Resize(width, height, channels);
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* to = image.row(y);
    for (int64_t x = 0; x < width; ++x) {
      const int64_t across = 200 * x / width, down = 200 * y / height;
      const int64_t values[] = {across + 20, down + 40, (across + down) / 2};
      for (int c = 0; c < channels; ++c) {
        *to++ = static_cast<uint8_t>(values[c]);
      }
    }
  }
  return image;
}

namespace {

// Big-endian TIFF with one directory of one entry.
std::string ExifOf(int orientation) {
  std::string exif("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0",
                   25);
  exif += static_cast<char>(orientation);
  exif.append(6, '\0');
  return exif;
}

}  // namespace

std::string EncodeJpeg(const Image& image, const JpegFile& file) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;  // NOLINT: the library's type
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = file.inks ? 4 : image.channels;
  info.in_color_space = file.inks             ? JCS_CMYK
                        : image.channels == 1 ? JCS_GRAYSCALE
                                              : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, file.quality, TRUE);
  if (file.progressive) jpeg_simple_progression(&info);
  info.comp_info[0].h_samp_factor = image.channels == 1 ? 1 : file.across;
  info.comp_info[0].v_samp_factor = image.channels == 1 ? 1 : file.down;
  if (file.inks) info.write_Adobe_marker = TRUE;
  jpeg_start_compress(&info, TRUE);
  if (file.orientation != 0) {
    const std::string exif = ExifOf(file.orientation);
    jpeg_write_marker(&info, JPEG_APP0 + 1,
                      reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  }
  std::vector<uint8_t> line;
  for (int64_t y = 0; y < image.height; ++y) {
    line.assign(image.row(y), image.row(y) + image.width * image.channels);
    if (file.inks) {
      // Inverted, without black: 255 of it.
      line.clear();
      for (int64_t x = 0; x < image.width; ++x) {
        const uint8_t* from = image.row(y) + 3 * x;
        line.insert(line.end(), {from[0], from[1], from[2], 255});
      }
    }
    JSAMPROW row = line.data();
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  jpeg_destroy_compress(&info);
  std::free(data);
  return bytes;
}

namespace {

void Append(png_structp png, png_bytep data, size_t n) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(data), n);
}

}  // namespace

std::string EncodePng(const Image& image, const PngFile& file) {
  std::string bytes;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &bytes, Append, nullptr);
  const bool gray = image.channels == 1;
  const int type =
      file.palette ? PNG_COLOR_TYPE_PALETTE
      : file.alpha
          ? (gray ? PNG_COLOR_TYPE_GRAY_ALPHA : PNG_COLOR_TYPE_RGB_ALPHA)
          : (gray ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), file.bits, type,
               file.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::map<std::vector<uint8_t>, uint8_t> colours;
  std::vector<std::vector<uint8_t>> lines(image.height);
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const uint8_t* from = image.row(y) + x * image.channels;
      if (file.palette) {
        const std::vector<uint8_t> colour(from, from + 3);
        lines[y].push_back(
            colours.emplace(colour, static_cast<uint8_t>(colours.size()))
                .first->second);
        continue;
      }
      for (int c = 0; c < image.channels + (file.alpha ? 1 : 0); ++c) {
        const uint8_t value = c == image.channels ? 128 : from[c];
        lines[y].insert(lines[y].end(), file.bits / 8, value);
      }
    }
  }
  if (file.palette) {
    std::vector<png_color> palette(colours.size());
    for (const auto& [colour, at] : colours) {
      palette[at] = {colour[0], colour[1], colour[2]};
    }
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  }
  png_write_info(png, info);
  std::vector<png_bytep> rows;
  for (auto& line : lines) rows.push_back(line.data());
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

}  // namespace runtime
}  // namespace halftone

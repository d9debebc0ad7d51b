// Zarr v3 arrays of a run directory: metadata, and the position of each cell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/json.hpp"
#include "patterns/pattern.hpp"

namespace fablint {

// Shape of the cells of a row as a Zarr array: planes (repeats) of rows (src) x columns (dst or round), `width`
// elements each. A chunk holds whole rows, so that one rank owns it.
struct Grid {
    Layout layout = Layout::matrix;
    std::int64_t planes = 1;
    std::int64_t rows = 0;
    std::int64_t columns = 0;

    // At most about 1000 chunk files per array.
    std::int64_t rows_per_chunk() const { return (rows * planes + 999) / 1000; }
};

// Names and lengths of dimensions, e.g. {{"size", 3}}.
using Dimensions = std::vector<std::pair<std::string, std::int64_t>>;

class ZarrArray {
  public:
    // `trailing`: the dimensions behind the grid's.
    ZarrArray(std::filesystem::path folder, const Grid& grid, std::string type, std::string fill_json,
              std::string fill_bytes, Dimensions trailing);

    const std::filesystem::path& folder() const { return folder_; }
    void write_metadata() const;
    std::size_t cell_bytes() const { return width_ * fill_bytes_.size(); }
    // Overwrites one cell with cell_bytes() bytes; creates its chunk when it does not exist yet.
    void write_cell(std::int64_t plane, std::int64_t row, std::int64_t column, const void* data);
    // Overwrites `bytes` bytes of the cell, `offset` bytes into it.
    void write_part(std::int64_t plane, std::int64_t row, std::int64_t column, std::size_t offset, const void* data,
                    std::size_t bytes);
    // The last written chunk stays open until close(), since successive cells are often of one row.
    void close() { open_.reset(); }

  private:
    std::filesystem::path chunk_of(std::int64_t plane, std::int64_t row) const;

    std::filesystem::path folder_;
    Grid grid_;
    std::string type_, fill_json_, fill_bytes_;
    Dimensions trailing_;
    std::size_t width_ = 1;
    std::filesystem::path open_path_;
    std::unique_ptr<CellFile> open_;
};

void write_array_metadata(const std::filesystem::path& folder, const Dimensions& dimensions,
                          std::vector<std::int64_t> chunk, const std::string& type, const std::string& fill_json);

// An array in one chunk, written at once, its metadata last. Numbers: int32, int64, float or double.
template <typename Number>
void write_array(const std::filesystem::path& folder, const Dimensions& dimensions, const std::vector<Number>& values);
void write_array(const std::filesystem::path& folder, const std::string& dimension,
                 const std::vector<std::string>& texts);

// The chunk of an array of texts: their number, then each after its length.
std::string encoded_texts(const std::vector<std::string>& texts);

// A group's zarr.json with these attributes.
std::string group_metadata(const Json& attributes);

}  // namespace fablint

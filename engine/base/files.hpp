// Atomic writing of files: a reader never sees a partial file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace fablint {

// The functions throw an `incomplete` error with the file and the system's message.

// Writes to a temporary name and renames. `bytes` may be binary.
void replace_file(const std::filesystem::path& file, std::string_view bytes);

// Creates a file of `count` copies of `element`, atomically, unless a file of that length exists. A shorter file was
// truncated from outside and is replaced: readers reject its cells as well.
void create_filled(const std::filesystem::path& file, const std::string& element, std::size_t count);

// Folder of a run directory with the rounds files of its rows, rounds/NAME.txt.
inline constexpr const char* rounds_folder = "rounds";
// Folder of a run directory with runs of other ranks that belong to it.
inline constexpr const char* launches_folder = "launches";

// Folder of a run directory with the checksums that the front end writes of complete rows, checksums/NAME.sha256.
inline constexpr const char* checksums_folder = "checksums";

// Folder of a run directory, and of each row in it, with the facts of ranks and hosts as arrays.
inline constexpr const char* tables_folder = "tables";

// The functions throw a usage error where the file cannot be read.
std::ifstream open_file(const std::filesystem::path& file);
std::string read_file(const std::filesystem::path& file);

void make_folder(const std::filesystem::path& folder);

// A file whose bytes are overwritten in place.
class CellFile {
  public:
    explicit CellFile(const std::filesystem::path& file);
    ~CellFile();
    CellFile(const CellFile&) = delete;
    CellFile& operator=(const CellFile&) = delete;
    void write(std::size_t offset, const void* data, std::size_t bytes);

  private:
    std::filesystem::path file_;
    int descriptor_;
};

}  // namespace fablint

// Writing files so that a reader never sees a half-written one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace fablint {

// All throw an `incomplete` error that names the file and the system's reason.

// Writes under another name and renames. `bytes` may be binary.
void replace_file(const std::filesystem::path& file, const std::string& bytes);

// Creates a file of `count` copies of `element` the same way, unless there is one of that length. (A truncated one was
// damaged from outside; a reader takes none of its cells, and neither do we.)
void create_filled(const std::filesystem::path& file, const std::string& element, std::size_t count);

// Of a run directory: holds the rounds files that its rows name as rounds/NAME.txt.
inline constexpr const char* rounds_folder = "rounds";
// Of a run directory: holds runs that other ranks measured for it.
inline constexpr const char* launches_folder = "launches";

// The content of a file; throws a usage error where it cannot be read.
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

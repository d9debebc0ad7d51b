// Access to sysfs: attributes of one line, folders, lists of CPUs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fablint {

// First line of a file; empty if it cannot be read (many attributes fail on interfaces that are down).
std::string first_line(const std::filesystem::path& file);

// The number that the first line begins with.
long integer(const std::filesystem::path& file, long otherwise);

// Entries of a folder, sorted by name; none if the folder does not exist.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder);

// Lists of numbers as the kernel writes them: {0,1,2,8} <-> "0-2,8".
std::string fold(const std::vector<int>& numbers);
std::vector<int> unfold(const std::string& text);

}  // namespace fablint

#include "base/sysfs.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace fablint {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
    std::ifstream stream(file);
    std::string line;
    std::getline(stream, line);
    return line;
}

long integer(const fs::path& file, long otherwise) {
    const std::string line = first_line(file);
    char* end = nullptr;
    const long value = std::strtol(line.c_str(), &end, 10);
    return end == line.c_str() ? otherwise : value;
}

std::vector<fs::path> entries(const fs::path& folder) {
    std::vector<fs::path> entries;
    std::error_code ignored;  // a folder that does not exist has no entries
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());
    return entries;
}

std::string fold(const std::vector<int>& numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t j = i;
        while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
        text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
        if (j > i) text += "-" + std::to_string(numbers[j]);
        i = j + 1;
    }
    return text;
}

std::vector<int> unfold(const std::string& text) {
    std::vector<int> numbers;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) {
        if (part.empty()) continue;
        const std::size_t dash = part.find('-');
        const int first = std::atoi(part.c_str());
        const int last = dash == std::string::npos ? first : std::atoi(part.c_str() + dash + 1);
        for (int number = first; number <= last; ++number) numbers.push_back(number);
    }
    return numbers;
}

}  // namespace fablint

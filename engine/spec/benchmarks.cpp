#include "spec/benchmarks.hpp"

#include <sstream>

#include "spec/values.hpp"

namespace fablint {

namespace {

constexpr const char* registry =
#include "registry/benchmarks.inc"
    ;

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<Benchmark> read_registry() {
    std::vector<Benchmark> found;
    std::istringstream lines(registry);
    for (std::string line; std::getline(lines, line);) {
        if (trimmed(line).empty() || trimmed(line).front() == '#') continue;
        std::vector<std::string> cells = split(line, '|');
        cells.resize(4);
        found.push_back({trimmed(cells[0]), trimmed(cells[1]), trimmed(cells[2]), trimmed(cells[3])});
    }
    return found;
}

}  // namespace

std::vector<std::string> Benchmark::words() const {
    std::vector<std::string> found;
    std::istringstream stream(row);
    for (std::string word; stream >> word;) found.push_back(word);
    return found;
}

const std::vector<Benchmark>& benchmarks() {
    static const std::vector<Benchmark> table = read_registry();
    return table;
}

const Benchmark* find_benchmark(const std::string& name) {
    for (const Benchmark& benchmark : benchmarks())
        if (benchmark.name == name) return &benchmark;
    return nullptr;
}

}  // namespace fablint

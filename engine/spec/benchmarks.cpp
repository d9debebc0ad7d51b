#include "spec/benchmarks.hpp"

#include <sstream>

namespace fablint {

std::vector<std::string> Benchmark::words() const {
    std::vector<std::string> words;
    std::istringstream stream(row);
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

const std::vector<Benchmark>& benchmarks() {
    static const std::vector<Benchmark> table = {
#define BENCHMARK(name, family, row, description) {#name, #family, row, description},
#include "registry/benchmarks.inc"
    };
    return table;
}

const Benchmark* find_benchmark(const std::string& name) {
    for (const Benchmark& benchmark : benchmarks())
        if (benchmark.name == name) return &benchmark;
    return nullptr;
}

}  // namespace fablint

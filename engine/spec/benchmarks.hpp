// Benchmarks of other programs, each as one row.
#pragma once

#include <string>
#include <vector>

namespace fablint {

struct Benchmark {
    std::string name;
    std::string family;
    std::string row;
    std::string description;

    std::vector<std::string> words() const;  // of the row
};

// The table registry/benchmarks.inc.
const std::vector<Benchmark>& benchmarks();
const Benchmark* find_benchmark(const std::string& name);  // null if there is none

}  // namespace fablint

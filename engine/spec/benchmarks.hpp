// The benchmarks that users know by other names, each as a row of ours.
#pragma once

#include <string>
#include <vector>

namespace fablint {

struct Benchmark {
    std::string name;
    std::string family;
    std::string row;
    std::string what;

    std::vector<std::string> words() const;  // of the row
};

// The registry, benchmarks.inc, which the front end reads too.
const std::vector<Benchmark>& benchmarks();
const Benchmark* find_benchmark(const std::string& name);  // null when there is none

}  // namespace fablint

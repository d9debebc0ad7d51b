// The result of one rank with one partner in one round: the unit that is sent and written.
#pragma once

#include <cstdint>
#include <vector>

#include "base/sample.hpp"

namespace fablint {

// Statistics of one message size. Seconds per message.
struct SizeResult {
    float min, median, mean, p99, max;
    std::uint32_t count;
};

struct Cell {
    std::int32_t src = 0;
    std::int32_t dst = 0;    // -1: all
    std::int32_t round = 0;  // over all repeats
    std::int32_t repeat = 0;
    double started = 0.0;  // s since the run started
    std::vector<SizeResult> sizes;
    std::vector<std::vector<std::uint32_t>> histograms;  // per size, or empty
};

SizeResult summary(const Samples& samples);
std::vector<std::uint32_t> bucket_counts(const Samples& samples);

// Cells as bytes, one after another.
void append(std::vector<char>& bytes, const Cell& cell);
std::vector<Cell> unpack(const std::vector<char>& bytes);

}  // namespace fablint

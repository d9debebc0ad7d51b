// Stopping rules.
#pragma once

#include <cstdint>
#include <optional>

#include "base/row_limits.hpp"
#include "base/sample.hpp"

namespace fablint {

// The first condition to be met ends a measurement. At least `fewest` samples are always taken.
struct StopRule {
    static constexpr std::int64_t fewest = 3;

    std::optional<std::int64_t> samples;            // exact number
    std::optional<double> precision;                // relative half-width of the 95 % confidence sequence of the median
    double budget_s = row_limits::longest_round_s;  // per round

    // `left_s`: what is left of the time allotted to this measurement.
    bool finished(const Samples& taken, double left_s) const;
    // Number of samples until finished() is to be asked again; requires that finished() is false.
    std::int64_t next_block(const Samples& taken, double sample_s, double left_s) const;
};

// Relative half-width of the 95 % confidence sequence of the median, which is valid at all sample counts simultaneously
// (Howard and Ramdas, Bernoulli 28(3), 2022, quantile confidence sequences). Infinite while there are too few samples.
double median_half_width(const Samples& samples);

}  // namespace fablint

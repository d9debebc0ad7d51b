#include "base/stop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fablint {

namespace {
// The coordinator announces samples in blocks: longer blocks need fewer announcements, shorter ones follow the time
// limit more closely.
constexpr double longest_block_s = 0.05;
constexpr double longest_block = 65536;  // samples; their times are kept until the end of the block
}  // namespace

double median_half_width(const Samples& samples) {
    constexpr double alpha = 0.05;
    const double t = static_cast<double>(samples.count());
    if (samples.count() < 4) return std::numeric_limits<double>::infinity();
    const double l = 1.4 * std::log(std::log(2.1 * t)) + std::log(10.0 / alpha);
    const double rank = 1.5 * std::sqrt(0.25 * l / t) + 0.8 * l / t;
    if (rank >= 0.5) return std::numeric_limits<double>::infinity();
    const double width = samples.quantile(0.5 + rank) - samples.quantile(0.5 - rank);
    return 0.5 * width / samples.quantile(0.5);
}

bool StopRule::finished(const Samples& taken, double left_s) const {
    if (samples) return taken.count() >= *samples || (left_s <= 0.0 && taken.count() >= fewest);
    if (taken.count() < fewest) return false;
    if (left_s <= 0.0) return true;
    return precision && median_half_width(taken) <= *precision;
}

std::int64_t StopRule::next_block(const Samples& taken, double sample_s, double left_s) const {
    const double time_s = std::min(longest_block_s, std::max(left_s, 0.0));
    const double affordable = sample_s > 0.0 ? time_s / sample_s : longest_block;
    std::int64_t block = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(affordable, longest_block)));
    // With a precision, test after every 25 % more samples: few tests, little overshoot.
    if (precision) block = std::min(block, std::max<std::int64_t>(64, taken.count() / 4));
    if (samples) block = std::min(block, *samples - taken.count());
    return std::max<std::int64_t>(1, block);
}

}  // namespace fablint

#include "base/sample.hpp"

#include <cmath>
#include <limits>

namespace fablint {

int Histogram::bucket_of(double seconds) {
    if (!(seconds > 0.0)) return 0;
    int exponent = 0;
    const double mantissa = std::frexp(seconds, &exponent);  // 0.5 <= mantissa < 1
    const int octave = exponent - 1 - lowest_exponent;
    if (octave < 0) return 0;
    if (octave >= octaves) return buckets - 1;
    return octave * per_octave + static_cast<int>((mantissa * 2.0 - 1.0) * per_octave);
}

double Histogram::lower_edge(int bucket) {
    const int octave = bucket / per_octave;
    const double fraction = static_cast<double>(bucket % per_octave) / per_octave;
    return std::ldexp(1.0 + fraction, lowest_exponent + octave);
}

void Samples::add(double seconds) {
    if (count_ == 0 || seconds < min_) min_ = seconds;
    if (count_ == 0 || seconds > max_) max_ = seconds;
    ++count_;
    sum_ += seconds;
    const int bucket = Histogram::bucket_of(seconds);
    first_ = std::min(first_, bucket);
    last_ = std::max(last_, bucket);
    histogram_.add(seconds);
}

void Samples::clear() {
    histogram_.clear();
    count_ = 0;
    sum_ = min_ = max_ = 0.0;
    first_ = Histogram::buckets;
    last_ = -1;
}

double Samples::quantile(double q) const {
    if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
    const double wanted = q * static_cast<double>(count_);
    double below = 0.0;
    for (int bucket = first_; bucket <= last_; ++bucket) {
        const double inside = histogram_.count(bucket);
        if (inside > 0.0 && below + inside >= wanted) {
            const double low = Histogram::lower_edge(bucket);
            const double width = Histogram::lower_edge(bucket + 1) - low;
            const double value = low + width * (wanted - below) / inside;
            return std::min(std::max(value, min_), max_);
        }
        below += inside;
    }
    return max_;
}

}  // namespace fablint

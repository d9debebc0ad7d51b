// Samples of one pair at one size: exact count, mean, minimum, maximum, and a histogram with logarithmic buckets for
// the quantiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fablint {

// 128 buckets per octave, of equal width within an octave as in HdrHistogram: relative error 1/128. Covers 58 ps to 256
// s; values outside are counted in the first or last bucket.
class Histogram {
  public:
    static constexpr int per_octave = 128;
    static constexpr int lowest_exponent = -34;  // 2^-34 s
    static constexpr int octaves = 42;
    static constexpr int buckets = per_octave * octaves;

    static int bucket_of(double seconds);
    static double lower_edge(int bucket);

    Histogram() : counts_(buckets, 0) {}
    void add(double seconds) { ++counts_[static_cast<std::size_t>(bucket_of(seconds))]; }
    void clear() { std::fill(counts_.begin(), counts_.end(), 0U); }
    std::uint32_t count(int bucket) const { return counts_[static_cast<std::size_t>(bucket)]; }

  private:
    std::vector<std::uint32_t> counts_;
};

class Samples {
  public:
    void add(double seconds);
    void clear();

    std::int64_t count() const { return count_; }
    double min() const { return min_; }
    double max() const { return max_; }
    double mean() const { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }
    // Quantile q in 0..1, interpolated linearly inside its bucket and clamped to min..max. NaN without samples.
    double quantile(double q) const;
    const Histogram& histogram() const { return histogram_; }

  private:
    Histogram histogram_;
    std::int64_t count_ = 0;
    double sum_ = 0.0;
    double min_ = 0.0;
    double max_ = 0.0;
    int first_ = Histogram::buckets;  // the occupied range, so that quantiles need not scan all buckets
    int last_ = -1;
};

}  // namespace fablint

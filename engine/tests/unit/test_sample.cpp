#include <doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/sample.hpp"
#include "base/stop.hpp"
#include "output/cell.hpp"

using namespace fablint;

TEST_CASE("buckets cover the line without gaps, each to 1/128") {
    for (int bucket = 0; bucket + 1 < Histogram::buckets; ++bucket) {
        const double low = Histogram::lower_edge(bucket);
        const double high = Histogram::lower_edge(bucket + 1);
        CHECK(high > low);
        CHECK((high - low) / low <= 1.0 / 128 + 1e-12);
        CHECK(Histogram::bucket_of(low) == bucket);
        CHECK(Histogram::bucket_of(std::nextafter(high, 0.0)) == bucket);
    }
    CHECK(Histogram::bucket_of(0.0) == 0);
    CHECK(Histogram::bucket_of(-1.0) == 0);
    CHECK(Histogram::bucket_of(std::numeric_limits<double>::quiet_NaN()) == 0);
    CHECK(Histogram::bucket_of(1e9) == Histogram::buckets - 1);
}

TEST_CASE("count, mean, minimum and maximum are exact, quantiles to 0.4 %") {
    std::mt19937_64 generator(1);
    std::lognormal_distribution<double> draw(-13.0, 0.5);
    Samples samples;
    std::vector<double> all;
    double sum = 0.0;
    for (int i = 0; i < 20'000; ++i) {
        all.push_back(draw(generator));
        sum += all.back();
        samples.add(all.back());
    }
    std::sort(all.begin(), all.end());
    CHECK(samples.count() == 20'000);
    CHECK(samples.mean() == doctest::Approx(sum / 20'000));
    CHECK(samples.min() == all.front());
    CHECK(samples.max() == all.back());
    for (const double q : {0.01, 0.25, 0.5, 0.9, 0.99}) {
        const double exact = all[static_cast<std::size_t>(q * 20'000)];
        CHECK(samples.quantile(q) == doctest::Approx(exact).epsilon(0.004));
    }
    samples.clear();
    CHECK(samples.count() == 0);
    CHECK(std::isnan(samples.quantile(0.5)));
}

TEST_CASE("equal samples have that value as every quantile") {
    Samples samples;
    for (int i = 0; i < 5; ++i) samples.add(3.3e-6);
    for (const double q : {0.0, 0.5, 0.99, 1.0}) CHECK(samples.quantile(q) == doctest::Approx(3.3e-6));
}

TEST_CASE("cells are equal after conversion to bytes and back") {
    Cell cell;
    cell.src = 3;
    cell.dst = 5;
    cell.round = 7;
    cell.repeat = 1;
    cell.started = 12.5;
    cell.sizes = {{1.F, 2.F, 3.F, 4.F, 5.F, 6}, {7.F, 8.F, 9.F, 10.F, 11.F, 12}};
    cell.histograms = {std::vector<std::uint32_t>(Histogram::buckets, 0),
                       std::vector<std::uint32_t>(Histogram::buckets, 0)};
    cell.histograms[1][17] = 99;
    std::vector<char> bytes;
    append(bytes, cell);
    append(bytes, cell);
    const std::vector<Cell> back = unpack(bytes);
    REQUIRE(back.size() == 2);
    CHECK(back[1].dst == 5);
    CHECK(back[1].started == 12.5);
    CHECK(back[1].sizes[1].p99 == 10.F);
    CHECK(back[1].sizes[1].count == 12);
    CHECK(back[1].histograms == cell.histograms);
    CHECK(unpack({}).empty());
}

TEST_CASE("the confidence sequence holds the true median at every look in at least 95 % of the streams") {
    constexpr int streams = 300;
    int missed = 0;
    for (int stream = 0; stream < streams; ++stream) {
        std::mt19937_64 generator(static_cast<std::uint64_t>(stream));
        std::lognormal_distribution<double> draw(0.0, 0.3);  // median 1
        Samples samples;
        bool out = false;
        for (int i = 1; i <= 3000; ++i) {
            samples.add(draw(generator) * 1e-6);
            const double half = median_half_width(samples);
            if (!std::isfinite(half)) continue;
            const double median = samples.quantile(0.5);
            out = out || median * (1.0 - 2.0 * half) > 1e-6 || median * (1.0 + 2.0 * half) < 1e-6;
        }
        missed += out ? 1 : 0;
    }
    CHECK(missed <= streams / 20);
}

TEST_CASE("half-widths shrink with more samples and are infinite for few") {
    std::mt19937_64 generator(3);
    std::normal_distribution<double> draw(1e-6, 1e-7);
    Samples samples;
    CHECK(std::isinf(median_half_width(samples)));
    for (int i = 0; i < 100; ++i) samples.add(draw(generator));
    const double early = median_half_width(samples);
    for (int i = 0; i < 10'000; ++i) samples.add(draw(generator));
    CHECK(median_half_width(samples) < early / 5);
    CHECK(median_half_width(samples) > 0.0);
}

TEST_CASE("a fixed count is exact") {
    StopRule rule;
    rule.samples = 10;
    Samples samples;
    std::int64_t planned = 0;
    while (!rule.finished(samples, 1.0)) {
        const std::int64_t block = rule.next_block(samples, 1e-6, 1.0);
        planned += block;
        for (std::int64_t i = 0; i < block; ++i) samples.add(1e-6);
    }
    CHECK(planned == 10);
}

TEST_CASE("time that is up ends a measurement, but not before three samples") {
    StopRule rule;
    Samples samples;
    CHECK_FALSE(rule.finished(samples, -1.0));
    CHECK(rule.next_block(samples, 1.0, -1.0) == 1);
    for (int i = 0; i < 3; ++i) samples.add(1.0);
    CHECK(rule.finished(samples, -1.0));
    CHECK_FALSE(rule.finished(samples, 1.0));
}

TEST_CASE("steady samples reach a precision, scattered ones do not") {
    StopRule rule;
    rule.precision = 0.01;
    Samples steady, scattered;
    std::mt19937_64 generator(5);
    std::lognormal_distribution<double> draw(-14.0, 1.0);
    for (int i = 0; i < 1000; ++i) {
        steady.add(1e-6 * (1.0 + 1e-4 * (i % 7)));
        scattered.add(draw(generator));
    }
    CHECK(rule.finished(steady, 1.0));
    CHECK_FALSE(rule.finished(scattered, 1.0));
}

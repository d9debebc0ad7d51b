#include "output/cell.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace fablint {

namespace {

template <typename T>
void put(std::vector<char>& bytes, const T& value) {
    const char* begin = reinterpret_cast<const char*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof value);
}

// Reads values one after another from bytes that append() wrote.
class Reader {
  public:
    explicit Reader(const std::vector<char>& bytes) : bytes_(bytes) {}
    bool more() const { return at_ < bytes_.size(); }
    template <typename T>
    T next() {
        T value{};
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }

  private:
    const std::vector<char>& bytes_;
    std::size_t at_ = 0;
};

// Most buckets are empty: pairs of bucket and count.
void append_histogram(std::vector<char>& bytes, const std::vector<std::uint32_t>& histogram) {
    const auto occupied =
        histogram.size() - static_cast<std::size_t>(std::count(histogram.begin(), histogram.end(), 0U));
    put(bytes, static_cast<std::uint32_t>(occupied));
    for (std::uint32_t bucket = 0; bucket < histogram.size(); ++bucket) {
        if (histogram[bucket] == 0) continue;
        put(bytes, bucket);
        put(bytes, histogram[bucket]);
    }
}

std::vector<std::uint32_t> next_histogram(Reader& reader) {
    std::vector<std::uint32_t> histogram(Histogram::buckets, 0);
    const auto occupied = reader.next<std::uint32_t>();
    for (std::uint32_t i = 0; i < occupied; ++i) {
        const auto bucket = reader.next<std::uint32_t>();
        histogram[bucket] = reader.next<std::uint32_t>();
    }
    return histogram;
}

}  // namespace

SizeResult summary(const Samples& samples) {
    constexpr auto most = static_cast<std::int64_t>(std::numeric_limits<std::uint32_t>::max());
    return {static_cast<float>(samples.min()),  static_cast<float>(samples.quantile(0.5)),
            static_cast<float>(samples.mean()), static_cast<float>(samples.quantile(0.99)),
            static_cast<float>(samples.max()),  static_cast<std::uint32_t>(std::min(samples.count(), most))};
}

std::vector<std::uint32_t> bucket_counts(const Samples& samples) {
    std::vector<std::uint32_t> counts(Histogram::buckets);
    for (int bucket = 0; bucket < Histogram::buckets; ++bucket)
        counts[static_cast<std::size_t>(bucket)] = samples.histogram().count(bucket);
    return counts;
}

void append(std::vector<char>& bytes, const Cell& cell) {
    put(bytes, cell.src);
    put(bytes, cell.dst);
    put(bytes, cell.round);
    put(bytes, cell.repeat);
    put(bytes, cell.started);
    put(bytes, static_cast<std::uint32_t>(cell.sizes.size()));
    put(bytes, static_cast<std::uint32_t>(cell.histograms.size()));
    for (const SizeResult& size : cell.sizes) put(bytes, size);
    for (const auto& histogram : cell.histograms) append_histogram(bytes, histogram);
}

std::vector<Cell> unpack(const std::vector<char>& bytes) {
    std::vector<Cell> cells;
    for (Reader reader(bytes); reader.more();) {
        Cell cell;
        cell.src = reader.next<std::int32_t>();
        cell.dst = reader.next<std::int32_t>();
        cell.round = reader.next<std::int32_t>();
        cell.repeat = reader.next<std::int32_t>();
        cell.started = reader.next<double>();
        const auto sizes = reader.next<std::uint32_t>();
        const auto histograms = reader.next<std::uint32_t>();
        for (std::uint32_t i = 0; i < sizes; ++i) cell.sizes.push_back(reader.next<SizeResult>());
        for (std::uint32_t i = 0; i < histograms; ++i) cell.histograms.push_back(next_histogram(reader));
        cells.push_back(std::move(cell));
    }
    return cells;
}

}  // namespace fablint

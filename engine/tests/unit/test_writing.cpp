// JSON, Zarr arrays: what is written and read without MPI.
#include <doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/errors.hpp"
#include "base/json.hpp"
#include "output/store.hpp"
#include "tests/scratch.hpp"

using namespace fablint;
namespace fs = std::filesystem;

namespace {

template <typename T>
std::vector<T> numbers(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(stream), {});
    std::vector<T> values(bytes.size() / sizeof(T));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
    return values;
}

Cell cell(int src, int dst, int round, float time, std::uint32_t count) {
    Cell cell;
    cell.src = src;
    cell.dst = dst;
    cell.round = round;
    cell.started = 0.5;
    cell.sizes = {{time, time, time, time, time, count}, {2 * time, 2 * time, 2 * time, 2 * time, 2 * time, count}};
    return cell;
}

}  // namespace

TEST_CASE("JSON strings are escaped, and always UTF-8") {
    CHECK(Json("a\"b\\c\n").text() == "\"a\\u0022b\\u005cc\\u000a\"");
    CHECK(Json("gr\xc3\xbc\xc3\x9f").text() == "\"gr\xc3\xbc\xc3\x9f\"");
    CHECK(Json("\xff\xc3").text() == "\"\\ufffd\\ufffd\"");
    CHECK(Json("\xed\xa0\x80").text() == "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
    CHECK(Json(std::numeric_limits<double>::quiet_NaN()).text() == "null");
    CHECK(Json(0.1).text() == "0.10000000000000001");
    CHECK(JsonObject().add("a", 1).add("b", Json::list(std::vector<int>{1, 2})).json().text() ==
          "{\"a\":1,\"b\":[1,2]}");
}

TEST_CASE("a matrix row: cells land where they belong, the rest reads as missing") {
    const Scratch scratch;
    Grid grid;
    grid.rows = grid.columns = 3;
    RowArrays arrays(scratch.path, grid, {8, 16}, false);
    arrays.write_metadata();
    arrays.write(cell(1, 2, 5, 1e-6F, 10));
    arrays.close();
    const auto medians = numbers<float>(scratch.path / "time_median" / "c.0.1.0.0");
    REQUIRE(medians.size() == 6);
    CHECK(medians[4] == 1e-6F);
    CHECK(medians[5] == 2e-6F);
    for (int i = 0; i < 4; ++i) CHECK(std::isnan(medians[static_cast<std::size_t>(i)]));
    CHECK(numbers<std::uint32_t>(scratch.path / "count" / "c.0.1.0.0") ==
          std::vector<std::uint32_t>{0, 0, 0, 0, 10, 10});
    CHECK(numbers<std::int32_t>(scratch.path / "round" / "c.0.1.0") == std::vector<std::int32_t>{-1, -1, 5});
    CHECK_FALSE(fs::exists(scratch.path / "count" / "c.0.0.0.0"));
    CHECK_FALSE(fs::exists(scratch.path / "dst"));
}

TEST_CASE("a list row: the column is the round, and dst is the partner") {
    const Scratch scratch;
    Grid grid;
    grid.layout = Layout::list;
    grid.rows = 4;
    grid.columns = 2;
    RowArrays arrays(scratch.path, grid, {8, 16}, false);
    arrays.write_metadata();
    arrays.write(cell(3, 0, 1, 1e-6F, 1));
    arrays.close();
    CHECK(numbers<std::int32_t>(scratch.path / "dst" / "c.3.0") == std::vector<std::int32_t>{-1, 0});
    CHECK(numbers<float>(scratch.path / "time_max" / "c.3.0.0").at(2) == 1e-6F);
}

TEST_CASE("an array has at most a thousand chunks, each with whole rows") {
    Grid grid;
    grid.rows = 10'000;
    CHECK(grid.rows_per_chunk() == 10);
    grid.planes = 3;
    CHECK(grid.rows_per_chunk() == 30);
    grid.rows = 7;
    CHECK(grid.rows_per_chunk() == 1);
}

TEST_CASE("histograms are stored by bucket") {
    const Scratch scratch;
    Grid grid;
    grid.rows = grid.columns = 2;
    RowArrays arrays(scratch.path, grid, {8, 16}, true);
    arrays.write_metadata();
    Samples samples;
    samples.add(1e-6);
    samples.add(3e-6);
    Cell with = cell(0, 1, 0, 1e-6F, 2);
    with.histograms = {bucket_counts(samples), std::vector<std::uint32_t>(Histogram::buckets, 0)};
    arrays.write(with);
    arrays.close();
    const auto counts = numbers<std::uint32_t>(scratch.path / "histogram" / "c.0.0.0.0.0");
    const std::size_t begin = 2 * Histogram::buckets;  // dst 1, first size
    CHECK(counts.at(begin + static_cast<std::size_t>(Histogram::bucket_of(1e-6))) == 1);
    CHECK(counts.at(begin + static_cast<std::size_t>(Histogram::bucket_of(3e-6))) == 1);
    CHECK(numbers<double>(scratch.path / "bucket" / "c.0").size() == Histogram::buckets);
}

TEST_CASE("a folder that cannot be written is an error with name and reason") {
    CHECK_THROWS_WITH_AS(replace_file("/proc/none/x", "text"), "cannot write /proc/none/x: No such file or directory",
                         Error);
}

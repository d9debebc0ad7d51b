// JSON, Zarr arrays, payloads, network interfaces: what is written and read without MPI.
#include <doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "../errors.hpp"
#include "../facts.hpp"
#include "../json.hpp"
#include "../memory.hpp"
#include "../nics.hpp"
#include "../payload.hpp"
#include "../store.hpp"

using namespace fablint;
namespace fs = std::filesystem;

namespace {

// A folder that goes away with the test.
class Scratch {
  public:
    Scratch() {
        std::string name = (fs::temp_directory_path() / "fablint-test-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Scratch() { fs::remove_all(path); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    fs::path path;
};

template <typename T>
std::vector<T> numbers(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(stream), {});
    std::vector<T> values(bytes.size() / sizeof(T));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
    return values;
}

void write_text(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
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

TEST_CASE("a list row: the column is the round, and dst says with whom") {
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

TEST_CASE("a payload shows the first wrong byte, wherever it is") {
    const auto memory = memory_named("host").make();
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{4096}, std::size_t{5000}}) {
        Payload payload(*memory, bytes, 2);
        payload.fill(1, 3, 5, 17);
        std::memcpy(payload.receive_slot(1), payload.send_slot(1), bytes);
        CHECK_FALSE(payload.damage(1, 3, 5, 17));
        CHECK(payload.damage(1, 3, 5, 18));
        CHECK(payload.damage(1, 5, 3, 17));
        for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
            auto* byte = static_cast<unsigned char*>(payload.receive_slot(1)) + at;
            *byte ^= 1U;
            CHECK(payload.damage(1, 3, 5, 17).value() == at);
            *byte ^= 1U;
        }
        payload.poison(1);
        CHECK(payload.damage(1, 3, 5, 17));
    }
}

TEST_CASE("slots of a window do not overlap and fit the allocation") {
    const auto memory = memory_named("host").make();
    Payload payload(*memory, 5000, 3);
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{100}, std::size_t{5000}}) {
        payload.set_size(bytes);
        const auto* first = static_cast<unsigned char*>(payload.send_slot(0));
        const auto* second = static_cast<unsigned char*>(payload.send_slot(1));
        CHECK(second >= first + bytes);
        CHECK(static_cast<unsigned char*>(payload.send_slot(2)) + bytes <= first + Payload::footprint(5000, 3) / 2);
    }
}

TEST_CASE("interfaces and counters come from sysfs") {
    const Scratch scratch;
    const fs::path net = scratch.path / "class" / "net";
    write_text(net / "lo" / "operstate", "unknown\n");
    write_text(net / "hsn0" / "operstate", "up\n");
    write_text(net / "hsn0" / "speed", "200000\n");
    write_text(net / "hsn0" / "mtu", "9000\n");
    write_text(net / "hsn0" / "device" / "numa_node", "1\n");
    write_text(net / "hsn0" / "statistics" / "rx_errors", "3\n");
    write_text(net / "eth0" / "operstate", "up\n");
    write_text(net / "eth0" / "speed", "-1\n");
    write_text(net / "eth1" / "operstate", "down\n");
    const fs::path port = scratch.path / "class" / "infiniband" / "mlx5_0" / "ports" / "1";
    write_text(port / "state", "4: ACTIVE\n");
    write_text(port / "rate", "400 Gb/sec (4X NDR)\n");
    write_text(port / "counters" / "symbol_error", "7\n");
    write_text(port / "counters" / "broken", "no number\n");
    const std::vector<Nic> nics = find_nics(scratch.path);
    REQUIRE(nics.size() == 4);
    CHECK(nics[2].name == "hsn0");
    CHECK(nics[2].mtu == 9000);
    CHECK(nics[0].speed_mbps == 0.0);
    CHECK(nics[3].name == "mlx5_0/1");
    CHECK(nics[3].speed_mbps == 400'000.0);
    CHECK(nearest_nic(nics, 1) == "hsn0");       // its NUMA node
    CHECK(nearest_nic(nics, -1) == "mlx5_0/1");  // the fastest
    CHECK(nearest_nic({nics[1]}, 0).empty());    // down
    CHECK(read_counters(scratch.path, nics[2]) == std::map<std::string, long long>{{"rx_errors", 3}});
    CHECK(read_counters(scratch.path, nics[3]) == std::map<std::string, long long>{{"symbol_error", 7}});
    CHECK(find_nics(scratch.path / "nowhere").empty());
}

TEST_CASE("CPU lists are folded") {
    CHECK(fold({}) == "");
    CHECK(fold({3}) == "3");
    CHECK(fold({0, 1, 2, 8, 10, 11}) == "0-2,8,10-11");
}

#include <doctest.h>

#include <algorithm>
#include <set>

#include "base/errors.hpp"
#include "base/table.hpp"
#include "kernels/kernel.hpp"
#include "spec/benchmarks.hpp"
#include "spec/options.hpp"
#include "tests/option_refusals.hpp"

using namespace fablint;

TEST_CASE("every benchmark is one row that parses, under a name of its own") {
    std::set<std::string> names;
    for (const Benchmark& benchmark : benchmarks()) {
        CAPTURE(benchmark.name);
        CHECK(names.insert(benchmark.name).second);
        CHECK_FALSE(benchmark.family.empty());
        CHECK_FALSE(benchmark.description.empty());
        CHECK(line_refusal(benchmark.row) == "accepted");
        CHECK(line_refusal(benchmark.name) == "accepted");
        for (const KernelInfo& kernel : kernels()) CHECK(benchmark.name != kernel.name);
    }
    for (const char* family : {"OSU", "LinkTest", "net_sanitizer"})
        CHECK(std::any_of(benchmarks().begin(), benchmarks().end(),
                          [&](const Benchmark& benchmark) { return benchmark.family == family; }));
    CHECK(find_benchmark("osu_nothing") == nullptr);
}

TEST_CASE("a benchmark's name stands for its row, and the user's options override it") {
    const Benchmark* benchmark = find_benchmark("osu_latency");
    REQUIRE(benchmark != nullptr);
    RowOptions by_name = row_of("osu_latency --name x");
    CHECK(by_name.text() == row_of(benchmark->row + " --name x").text());
    const RowOptions fewer = parse_command_line({"osu_latency", "--iterations", "7", "--sizes", "8"}).rows.at(0);
    CHECK(fewer.iterations_for(8).value() == 7);
    CHECK(fewer.sizes == ListOfSizes{8});
    CHECK(fewer.single_direction);
    CHECK_FALSE(row_of("osu_latency --directions both").single_direction);
    const RowOptions until = parse_command_line({"osu_latency", "--samples", "5"}).rows.at(0);
    CHECK(until.stop.samples == 5);
    CHECK_FALSE(until.iterations);
    CHECK(refusal({"osu_latency", "--samples", "5", "--iterations", "5"}) != "accepted");
    CHECK(refusal({"osu_latency", "osu_bw"}) != "accepted");
}

TEST_CASE("a plan file has one row per line, and its errors name the line") {
    const auto rows = parse_plan("# night\nlatency --sizes 8\n\nbandwidth --sizes 1M # big\n", "plan.txt");
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].kernel == "bandwidth");
    CHECK(plan_refusal("latency\n\n\n\n\n\nlatency --sizs 8\n") ==
          "plan.txt:7: unknown option --sizs: see fablint-engine --help");
    CHECK(plan_refusal("latency -o x\n") == "plan.txt:1: unknown option -o: see fablint-engine --help");
    CHECK(plan_refusal("# nothing\n") ==
          "plan.txt: no row in the plan: write one per line, such as latency --pattern pair");
}

TEST_CASE("rows are named after their kernel, and no name is used twice") {
    std::vector<RowOptions> rows = parse_plan("latency\nlatency --sizes 8\nbandwidth --name latency-2\nlatency\n", "p");
    name_rows(rows);
    CHECK(rows[0].name == "latency");
    CHECK(rows[1].name == "latency-3");
    CHECK(rows[2].name == "latency-2");
    CHECK(rows[3].name == "latency-4");
    rows = parse_plan("latency --name a\nlatency --name a\n", "p");
    CHECK_THROWS_AS(name_rows(rows), Error);
}

TEST_CASE("only-rounds takes ranges, and none") {
    const RowOptions some = parse_command_line({"latency", "--only-rounds", "0-2,7"}).rows.at(0);
    for (const int round : {0, 1, 2, 7}) CHECK(some.wants_round(round));
    for (const int round : {3, 6, 8}) CHECK_FALSE(some.wants_round(round));
    CHECK_FALSE(parse_command_line({"latency", "--only-rounds", "none"}).rows.at(0).wants_round(0));
}

TEST_CASE("the number of ranks that is expected is a count") {
    CHECK(parse_command_line({"latency"}).expect_ranks == 0);
    CHECK(parse_command_line({"--version", "--expect-ranks", "16"}).expect_ranks == 16);
    CHECK(refusal({"latency", "--expect-ranks", "none"}).find("--expect-ranks") != std::string::npos);
    CHECK(refusal({"latency", "--expect-ranks", "0"}).find("--expect-ranks") != std::string::npos);
}

#include <doctest.h>

#include "../errors.hpp"
#include "../options.hpp"

using namespace fablint;

namespace {

std::string refusal(const std::vector<std::string>& words) {
    try {
        parse_command_line(words);
    } catch (const Error& error) {
        CHECK(error.status() == Exit::usage);
        return error.what();
    }
    return "accepted";
}

std::string plan_refusal(const std::string& text) {
    try {
        parse_plan(text, "plan.txt");
    } catch (const Error& error) {
        CHECK(error.status() == Exit::usage);
        return error.what();
    }
    return "accepted";
}

using Sizes = std::vector<std::size_t>;

}  // namespace

TEST_CASE("sizes: lists, ranges, units") {
    CHECK(parse_sizes("8") == Sizes{8});
    CHECK(parse_sizes("0,7,1K,2m") == Sizes{0, 7, 1024, 2 << 20});
    CHECK(parse_sizes("1:8") == Sizes{1, 2, 4, 8});
    CHECK(parse_sizes("0:4") == Sizes{0, 1, 2, 4});
    CHECK(parse_sizes("3:20") == Sizes{3, 6, 12});
    CHECK(parse_sizes("1K:4K,1M") == Sizes{1024, 2048, 4096, 1 << 20});
    for (const char* text :
         {"", "-8", "8x", "K", "1:", ":8", "8,", "8:1", "1:2:3", "1e3", " 8", "8,8", "9999999999999G", "2G"})
        CHECK_THROWS_AS_MESSAGE(parse_sizes(text), Error, text);
}

TEST_CASE("a row is its options, with defaults") {
    const RowOptions row = parse_command_line({"latency"}).rows.at(0);
    CHECK(row.pattern == "pair");
    CHECK(row.sizes.size() == 23);
    CHECK(row.stop.budget_s == 1.0);
    CHECK(row.stop.precision.value() == 0.02);
    CHECK_FALSE(row.stop.samples);
}

TEST_CASE("a stopping rule that is given alone is the only one, under the cap of a minute") {
    const RowOptions fixed = parse_command_line({"latency", "--samples", "5"}).rows.at(0);
    CHECK(fixed.stop.samples.value() == 5);
    CHECK_FALSE(fixed.stop.precision);
    CHECK(fixed.stop.budget_s == 60.0);
    const RowOptions timed = parse_command_line({"latency", "--budget", "0.5"}).rows.at(0);
    CHECK(timed.stop.budget_s == 0.5);
    CHECK_FALSE(timed.stop.precision);
}

TEST_CASE("windows stay below 16 MiB in flight unless they are given") {
    RowOptions row = parse_command_line({"bandwidth"}).rows.at(0);
    CHECK(row.window_for(8) == 64);
    CHECK(row.window_for(1 << 20) == 16);
    CHECK(row.window_for(64 << 20) == 1);
    row.window = 64;
    CHECK(row.window_for(1 << 20) == 64);
    CHECK(parse_command_line({"latency"}).rows.at(0).window_for(8) == 1);
}

TEST_CASE("a row's text gives the row again") {
    const std::vector<std::string> words = {"bandwidth", "--name",    "x",      "--pattern", "random", "--matchings",
                                            "3",         "--order",   "serial", "--repeats", "2",      "--seed",
                                            "9",         "--sizes",   "1K,1M",  "--window",  "4",      "--warmup",
                                            "0",         "--samples", "7",      "--batch",   "2",      "--histogram"};
    const RowOptions row = parse_command_line(words).rows.at(0);
    const RowOptions again = parse_plan(row.text(), "again").at(0);
    CHECK(again.text() == row.text());
    CHECK(again.window.value() == 4);
    CHECK(again.histogram);
}

TEST_CASE("wrong options are refused in one line that says what to do") {
    CHECK(refusal({"latncy"}) == "unknown kernel 'latncy': choose latency, bandwidth, bibandwidth or exchange");
    CHECK(refusal({}) == "no kernel: choose latency, bandwidth, bibandwidth or exchange");
    CHECK(refusal({"latency", "--sizs", "8"}) == "unknown option --sizs: see fablint-engine --help");
    CHECK(refusal({"latency", "--sizes"}) == "--sizes needs a value");
    CHECK(refusal({"latency", "--sizes", "-8"}) == "size '-8': give bytes such as 8, 64K or 1M (powers of 1024)");
    CHECK(refusal({"bandwidth", "--sizes", "0"}) == "size 0 has no meaning for bandwidth: start at 1");
    CHECK(refusal({"latency", "--window", "4"}) == "--window has no meaning for latency: only for windowed kernels");
    CHECK(refusal({"latency", "--samples", "0"}) == "--samples 0: give a whole number of at least 1");
    CHECK(refusal({"bandwidth", "--window", "9999999999"}) == "--window 9999999999: at most 1000000");
    CHECK(refusal({"latency", "--seed", "99999999999999999999"}) ==
          "--seed 99999999999999999999: the number is too large");
    CHECK(refusal({"latency", "--budget", "nan"}) == "--budget nan: give a number above 0");
    CHECK(refusal({"latency", "--pattern", "rounds"}) == "--pattern rounds needs --rounds-file");
    CHECK(refusal({"latency", "--transport", "null", "--validate"}) ==
          "--validate is impossible on transport null, which moves nothing");
    CHECK(refusal({"latency", "--name", "../x"}) ==
          "--name ../x: letters, digits, - and _ only, since it names a folder");
    CHECK(refusal({"latency", "--name", "launch-1"}) ==
          "--name launch-1: the run directory keeps that name for itself, choose another");
    CHECK(refusal({"latency", "--plan", "p"}) ==
          "row options and --plan exclude each other: put the row into the plan file");
    CHECK(refusal({"latency", "--only-rounds", "3-1"}) == "--only-rounds 1: give a whole number of at least 3");
    CHECK(refusal({"latency", "--resume"}) == "--resume needs -o DIR, the run to go on with");
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

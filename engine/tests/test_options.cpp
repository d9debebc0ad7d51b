#include <doctest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "base/errors.hpp"
#include "kernels/kernel.hpp"
#include "spec/benchmarks.hpp"
#include "spec/options.hpp"

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

RowOptions row_of(const std::string& line) { return parse_plan(line, "plan").at(0); }

// The error of one plan line, without where it is.
std::string line_refusal(const std::string& line) {
    const std::string where = "plan.txt:1: ";
    const std::string message = plan_refusal(line);
    return message.rfind(where, 0) == 0 ? message.substr(where.size()) : message;
}

using ListOfSizes = std::vector<std::size_t>;

}  // namespace

TEST_CASE("sizes: lists, ranges, units") {
    CHECK(parse_sizes("8") == ListOfSizes{8});
    CHECK(parse_sizes("0,7,1K,2m") == ListOfSizes{0, 7, 1024, 2 << 20});
    CHECK(parse_sizes("1:8") == ListOfSizes{1, 2, 4, 8});
    CHECK(parse_sizes("0:4") == ListOfSizes{0, 1, 2, 4});
    CHECK(parse_sizes("3:20") == ListOfSizes{3, 6, 12});
    CHECK(parse_sizes("1K:4K,1M") == ListOfSizes{1024, 2048, 4096, 1 << 20});
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
    CHECK(row.window_for(8, 1) == 64);
    CHECK(row.window_for(1 << 20, 1) == 16);
    CHECK(row.window_for(64 << 20, 1) == 1);
    row.window = 64;
    CHECK(row.window_for(1 << 20, 1) == 64);
    CHECK(parse_command_line({"latency"}).rows.at(0).window_for(8, 1) == 1);
}

TEST_CASE("windows to many peers at once stay below 256 MiB in flight") {
    const RowOptions row = row_of("bandwidth --pattern fan-in");
    CHECK(row.window_for(1 << 20, 16) == 16);
    CHECK(row.window_for(1 << 20, 64) == 4);
    CHECK(row.window_for(1 << 20, 100'000) == 1);
    CHECK(row.window_for(8, 100'000) == 64);
}

TEST_CASE("counts may be smaller for sizes above 8 KiB") {
    const RowOptions row = row_of("latency --warmup 100,10 --iterations 1000,200");
    CHECK(row.warmup_for(8192) == 100);
    CHECK(row.warmup_for(8193) == 10);
    CHECK(row.iterations_for(8192).value() == 1000);
    CHECK(row.iterations_for(8193).value() == 200);
    const RowOptions same = row_of("latency --warmup 7 --iterations 9");
    CHECK(same.warmup_for(1 << 20) == 7);
    CHECK(same.iterations_for(1 << 20).value() == 9);
    CHECK_FALSE(row_of("latency").iterations_for(8));
}

TEST_CASE("a count of iterations is the only rule, and worth an hour's wait") {
    const RowOptions row = row_of("latency --iterations 1000");
    CHECK_FALSE(row.stop.precision);
    CHECK_FALSE(row.stop.samples);
    CHECK(row.stop.budget_s == 3600.0);
    CHECK(row_of("latency --iterations 1000 --budget 5").stop.budget_s == 5.0);
}

TEST_CASE("defaults that depend on the kernel are OSU's") {
    for (const KernelInfo& kernel : kernels()) {
        const RowOptions row = row_of(kernel.name);
        CHECK(row.pattern == (kernel.uses == Uses::collectives ? "world" : "pair"));
        CHECK(row.sizes == parse_sizes(kernel.default_sizes));
        CHECK_FALSE(row.sizes_given);
        const bool accumulates = row.kernel == "get_accumulate";
        CHECK(row.win == (accumulates || row.kernel == "cas" ? "create" : "allocate"));
        CHECK(row.sync == (accumulates ? "lock" : row.kernel == "put_bibandwidth" ? "pscw" : "flush"));
        CHECK(row.senders == 1);
        CHECK(row.receivers == 2);
    }
    CHECK(row_of("get_accumulate --win dynamic --sync flush").win == "dynamic");
    CHECK(row_of("get_accumulate --win dynamic --sync flush").sync == "flush");
    CHECK(row_of("put_bibandwidth --sync fence").sync == "fence");
}

TEST_CASE("a row's text gives the row again") {
    const char* lines[] = {
        "bandwidth --name x --pattern random --matchings 3 --order serial --repeats 2 --seed 9 --sizes 1K,1M --window "
        "4 "
        "--warmup 0 --samples 7 --batch 2 --histogram --transport null",
        "latency --name x --pattern rounds --rounds 0-1,2-3;4-5 --warmup 100,10 --iterations 1000,100 --retest 5",
        "latency --name x --pattern rounds --rounds-file my.rounds --directions forward --precision 0.1 --validate",
        "bandwidth --name x --pattern clients-servers --servers 3 --buffers single",
        "put_latency --name x --pattern pairs --iterations 9 --batch 1 --barrier sample --mean loop",
        "latency --name x --pattern victim-aggressor --victims 4 --aggressor all-to-all",
        "latency_mt --name x --workers 3:4",
        "get_bandwidth --name x --win create --sync lock_all --window 8",
        "rpc_put --name x --win dynamic --server-flight 9",
    };
    for (const char* line : lines) {
        const RowOptions row = row_of(line);
        const std::string text = row.text();
        CHECK(row_of(text).text() == text);
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            CAPTURE(word);
            CHECK(text.find(word == "1K,1M" ? "1024,1048576" : word) != std::string::npos);
        }
    }
}

TEST_CASE("wrong options are refused in one line that says what to do") {
    CHECK(refusal({"latncy"}) == "unknown kernel 'latncy': see fablint-engine --list");
    CHECK(refusal({}) == "no kernel: see fablint-engine --list");
    CHECK(refusal({"latency", "bandwidth"}) == "one kernel per row, not 'latency' and 'bandwidth'");
    CHECK(refusal({"latency", "--sizs", "8"}) == "unknown option --sizs: see fablint-engine --help");
    CHECK(refusal({"latency", "--sizes"}) == "--sizes needs a value");
    CHECK(refusal({"latency", "--sizes", "-8"}) == "size '-8': give bytes such as 8, 64K or 1M (powers of 1024)");
    CHECK(refusal({"latency", "--samples", "0"}) == "--samples 0: give a whole number of at least 1");
    CHECK(refusal({"bandwidth", "--window", "9999999999"}) == "--window 9999999999: at most 1000000");
    CHECK(refusal({"latency", "--seed", "99999999999999999999"}) ==
          "--seed 99999999999999999999: the number is too large");
    CHECK(refusal({"latency", "--budget", "nan"}) == "--budget nan: give a number above 0");
    CHECK(refusal({"latency", "--name", "../x"}) ==
          "--name ../x: letters, digits, - and _ only, since it names a folder");
    CHECK(refusal({"latency", "--name", "rounds"}) ==
          "--name rounds: the run directory keeps that name for itself, choose another");
    CHECK(refusal({"latency", "--name", "launch-1"}) ==
          "--name launch-1: the run directory keeps that name for itself, choose another");
    CHECK(refusal({"latency", "--plan", "p"}) ==
          "row options and --plan exclude each other: put the row into the plan file");
    CHECK(refusal({"latency", "--only-rounds", "3-1"}) == "--only-rounds 1: give a whole number of at least 3");
    CHECK(refusal({"latency", "--resume"}) == "--resume needs -o DIR, the run to go on with");
    CHECK(refusal({"latency", "--epoch", "5"}) == "--epoch is for --resume");
}

TEST_CASE("values that no kernel takes are refused") {
    const std::pair<const char*, const char*> lines[] = {
        {"latency --directions sideways", "unknown directions 'sideways': choose both or forward"},
        {"latency --order random", "unknown order 'random': choose parallel or serial"},
        {"latency --barrier never", "unknown barrier 'never': choose start or sample"},
        {"latency --mean median", "unknown mean 'median': choose samples or loop"},
        {"latency --barrier sample --batch 1",
         "--barrier sample needs --iterations or --samples: every rank takes as many samples"},
        {"latency --barrier sample --samples 9", "--barrier sample needs --batch 1"},
        {"latency --barrier sample --samples 9 --batch 1 --budget 2",
         "--barrier sample: every rank takes as many samples, leave --budget and --precision out"},
        {"latency --barrier sample --samples 9 --batch 1 --pattern all-pairs",
         "--barrier sample needs --pattern pair or pairs, in which the same pairs meet all the time"},
        {"latency --barrier sample --samples 9 --batch 1 --order serial",
         "--barrier sample has no meaning with --order serial: one pair is measured at a time"},
        {"bandwidth --buffers many", "unknown buffers 'many': choose distinct or single"},
        {"latency --pattern victim-aggressor --aggressor me", "unknown aggressor 'me': choose incast or all-to-all"},
        {"put_latency --win window", "unknown window creation 'window': choose create, allocate or dynamic"},
        {"put_latency --sync none",
         "unknown synchronisation 'none': choose lock, flush, flush_local, lock_all, pscw or fence"},
        {"latency --transport ucx", "unknown transport 'ucx': choose mpi, null or corrupt"},
        {"latency --iterations 1,2,3", "--iterations 1,2,3: one number, or two as 1000,100"},
        {"latency --iterations 10,0", "--iterations 0: give a whole number of at least 1"},
        {"latency --warmup -1", "--warmup -1: give a whole number of at least 0"},
        {"latency_mt --workers 2", "--workers 2: write senders:receivers as 1:2"},
        {"latency_mt --workers 0:1", "--workers 0: give a whole number of at least 1"},
        {"latency_mt --workers 1:129", "--workers 1:129: at most 128 at each end"},
    };
    for (const auto& [line, message] : lines) CHECK(line_refusal(line) == message);
}

TEST_CASE("options that a kernel does not know are refused, not ignored") {
    const std::pair<const char*, const char*> lines[] = {
        {"latency --window 4", "--window has no meaning for latency: only for windowed kernels"},
        {"exchange --buffers single", "--buffers has no meaning for exchange: only for windowed kernels"},
        {"latency --workers 1:1", "--workers has no meaning for latency: only for latency_mt and latency_mp"},
        {"bandwidth --win create", "--win has no meaning for bandwidth: only for one-sided kernels"},
        {"bandwidth --sync lock", "--sync has no meaning for bandwidth: only for one-sided kernels"},
        {"rpc_put --sync lock", "--sync has no meaning for rpc_put: only for one-sided kernels"},
        {"put_latency --server-flight 2",
         "--server-flight has no meaning for put_latency: only for rpc_put and rpc_get"},
        {"barrier --retest 2", "--retest has no meaning for barrier: a collective has no pairs"},
        {"exchange --directions forward",
         "--directions forward has no meaning for exchange: both directions run at once"},
        {"put_bibandwidth --directions forward",
         "--directions forward has no meaning for put_bibandwidth: both directions run at once"},
        {"put_bibandwidth --sync flush", "put_bibandwidth needs a synchronisation of both ends: --sync pscw or fence"},
    };
    for (const auto& [line, message] : lines) CHECK(line_refusal(line) == message);
}

TEST_CASE("options that a pattern does not know are refused, not ignored") {
    const std::pair<const char*, const char*> lines[] = {
        {"latency --pattern rounds", "--pattern rounds needs --rounds-file or --rounds"},
        {"latency --pattern rounds --rounds 0-1 --rounds-file f", "--pattern rounds needs --rounds-file or --rounds"},
        {"latency --rounds 0-1", "--rounds needs --pattern rounds"},
        {"latency --rounds-file f", "--rounds-file needs --pattern rounds"},
        {"rpc_put --servers 2", "--servers needs --pattern clients-servers"},
        {"latency --victims 2", "--victims needs --pattern victim-aggressor"},
        {"latency --aggressor incast", "--aggressor needs --pattern victim-aggressor"},
        {"bandwidth --pattern fan-in --directions forward",
         "--directions has no meaning for pattern fan-in, which has one by itself"},
        {"bandwidth --pattern fan-out --retest 1", "--retest needs a pattern of pairs"},
        {"latency --pattern victim-aggressor --order serial",
         "--order serial has no meaning for victim-aggressor: the victims are measured at once"},
    };
    for (const auto& [line, message] : lines) CHECK(line_refusal(line) == message);
}

TEST_CASE("a kernel runs on the patterns that have the groups it needs, and on no other") {
    int accepted = 0;
    for (const KernelInfo& kernel : kernels()) {
        for (const PatternInfo& pattern : patterns()) {
            const std::string name = kernel.name;
            const std::string kind = pattern.name;
            const bool served = kind == "clients-servers" && (name == "rpc_put" || name == "rpc_get");
            const bool right = pattern.shape == Shape::world   ? kernel.uses == Uses::collectives
                               : pattern.shape == Shape::stars ? name == "bandwidth" || served
                                                               : kernel.uses != Uses::collectives;
            const std::string extra = kind == "rounds" ? " --rounds 0-1" : "";
            CHECK(line_refusal(name + " --pattern " + kind + extra) ==
                  (right ? "accepted" : name + " cannot run on pattern " + kind));
            accepted += right ? 1 : 0;
        }
    }
    CHECK(accepted == 20 * 7 + 5 + 3 + 2);
}

TEST_CASE("sizes without meaning are refused") {
    for (const KernelInfo& kernel : kernels()) {
        const std::string name = kernel.name;
        const auto taken = [&](const char* size) { return line_refusal(name + " --sizes " + size) == "accepted"; };
        const bool atomic = kernel.sizes == Sizes::only_8;
        CHECK(taken("0") == (kernel.sizes == Sizes::from_0 || kernel.sizes == Sizes::only_0));
        CHECK(taken("8") == (kernel.sizes != Sizes::only_0));
        CHECK(taken("7") == (kernel.sizes == Sizes::from_0 || kernel.sizes == Sizes::from_1));
        CHECK(taken("4M") == (kernel.sizes != Sizes::only_0 && !atomic));
    }
    CHECK(refusal({"bandwidth", "--sizes", "0"}) == "size 0 has no meaning for bandwidth: start at 1");
    CHECK(refusal({"barrier", "--sizes", "8"}) == "size 8 has no meaning for barrier: leave --sizes out");
    CHECK(refusal({"allreduce", "--sizes", "6"}) == "size 6 has no meaning for allreduce: choose multiples of 4");
}

TEST_CASE("rules that contradict each other are refused") {
    const std::pair<const char*, const char*> lines[] = {
        {"latency --iterations 5 --samples 5", "--iterations says when to stop: leave --samples and --precision out"},
        {"latency --iterations 5 --precision 0.1",
         "--iterations says when to stop: leave --samples and --precision out"},
        {"latency --transport null --validate", "--validate is impossible on transport null, which moves nothing"},
        {"latency --batch 2 --validate", "--validate checks every message by itself: leave --batch out"},
        {"bandwidth --buffers single --validate",
         "--validate needs a buffer for every message: leave --buffers single out"},
    };
    for (const auto& [line, message] : lines) CHECK(line_refusal(line) == message);
    CHECK(line_refusal("latency --batch 1 --validate") == "accepted");
}

TEST_CASE("run options") {
    const Options options = parse_command_line({"latency", "--counters", "--threads", "--ranks-per-nic", "4", "--sysfs",
                                                "/tmp/sys", "-q", "-o", "x.run", "--watchdog", "0"});
    CHECK(options.counters);
    CHECK(options.threads);
    CHECK(options.ranks_per_nic == 4);
    CHECK(options.sysfs == "/tmp/sys");
    CHECK(options.quiet);
    CHECK(options.output == "x.run");
    CHECK(options.watchdog_s == 0.0);
    CHECK(refusal({"latency", "--ranks-per-nic", "0"}) == "--ranks-per-nic 0: give a whole number of at least 1");
    CHECK(plan_refusal("latency --counters") == "plan.txt:1: unknown option --counters: see fablint-engine --help");
    CHECK(parse_command_line({"--list"}).action == Options::Action::list);
}

TEST_CASE("every benchmark is one row that parses, under a name of its own") {
    std::set<std::string> names;
    for (const Benchmark& benchmark : benchmarks()) {
        CAPTURE(benchmark.name);
        CHECK(names.insert(benchmark.name).second);
        CHECK_FALSE(benchmark.family.empty());
        CHECK_FALSE(benchmark.what.empty());
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
    CHECK(fewer.forward);
    CHECK_FALSE(row_of("osu_latency --directions both").forward);
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

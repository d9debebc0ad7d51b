#include <doctest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "base/errors.hpp"
#include "base/table.hpp"
#include "kernels/kernel.hpp"
#include "spec/benchmarks.hpp"
#include "spec/options.hpp"
#include "tests/option_refusals.hpp"

using namespace fablint;

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

TEST_CASE("a single stopping rule excludes the default ones, with a limit of one minute") {
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
        CHECK(row.pattern == (kernel.runs_on(shape::pairs) ? "pair" : "world"));
        CHECK(row.sizes == parse_sizes(kernel.default_sizes));
        CHECK_FALSE(row.sizes_given);
        const bool accumulates = row.kernel == "get_accumulate";
        const bool creates = accumulates || row.kernel == "cas";
        CHECK(row.win == (!kernel.one_sided() ? "" : creates ? "create" : "allocate"));
        CHECK(row.sync == (!kernel.one_sided()               ? ""
                           : accumulates                     ? "lock"
                           : row.kernel == "put_bibandwidth" ? "pscw"
                                                             : "flush"));
        CHECK(row.workers.senders == 1);
        CHECK(row.workers.receivers == 2);
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
        "latency --name x --pattern rounds --rounds-file my.rounds --directions single --precision 0.1 --validate",
        "bandwidth --name x --pattern clients-servers --servers 3 --buffers single",
        "put_latency --name x --pattern pairs --iterations 9 --batch 1 --barrier sample --mean loop",
        "latency --name x --pattern victim-aggressor --victims 4 --aggressor all-to-all",
        "latency_mt --name x --workers 3:4",
        "get_bandwidth --name x --win create --sync lock_all --window 8",
        "rpc_put --name x --win dynamic --server-flight 9",
        "bandwidth --name x --purpose rate_probe --samples 2",
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
          "--name rounds: the name is reserved in a run directory, choose another");
    CHECK(refusal({"latency", "--name", "checksums"}) ==
          "--name checksums: the name is reserved in a run directory, choose another");
    CHECK(refusal({"latency", "--name", "launch-1"}) ==
          "--name launch-1: the name is reserved in a run directory, choose another");
    CHECK(refusal({"latency", "--plan", "p"}) ==
          "row options and --plan exclude each other: put the row into the plan file");
    CHECK(refusal({"latency", "--only-rounds", "3-1"}) == "--only-rounds 1: give a whole number of at least 3");
    CHECK(refusal({"latency", "--resume"}) == "--resume needs -o DIR, the run to continue");
    CHECK(refusal({"latency", "--epoch", "5"}) == "--epoch needs --resume");
}

TEST_CASE("values that no kernel takes are refused") {
    const std::pair<const char*, const char*> lines[] = {
        {"latency --directions sideways", "unknown directions 'sideways': choose both or single"},
        {"latency --purpose fun", "unknown purpose 'fun': choose one of measure rate_probe bisection retest follow_up"},
        {"latency --order random", "unknown order 'random': choose parallel or serial"},
        {"latency --barrier never", "unknown barrier 'never': choose start or sample"},
        {"latency --mean median", "unknown mean 'median': choose samples or loop"},
        {"latency --barrier sample --batch 1",
         "--barrier sample requires --iterations or --samples: every rank takes the same number of samples"},
        {"latency --barrier sample --samples 9", "--barrier sample requires --batch 1: a sample is one repetition"},
        {"latency --barrier sample --samples 9 --batch 1 --budget 2",
         "--barrier sample excludes --budget: every rank takes the same number of samples"},
        {"latency --barrier sample --samples 9 --batch 1 --pattern all-pairs",
         "--barrier does not apply to pattern all-pairs: its pairs change from round to round, or it has none"},
        {"latency --barrier sample --samples 9 --batch 1 --order serial",
         "--barrier sample excludes --order serial: one pair is measured at a time"},
        {"bandwidth --buffers many", "unknown buffers 'many': choose distinct or single"},
        {"latency --pattern victim-aggressor --aggressor me", "unknown aggressor 'me': choose incast or all-to-all"},
        {"put_latency --win window", "unknown window creation 'window': choose create, allocate or dynamic"},
        {"put_latency --sync none",
         "unknown synchronisation 'none': choose lock, flush, flush_local, lock_all, pscw or fence"},
        {"latency --transport usb",
         "unknown transport 'usb': choose mpi, tcp, ucx, ofi, verbs, nccl, cuda-p2p, hip-p2p, null or corrupt"},
        {"latency --streams 2", "--streams does not apply to transport mpi: use --transport tcp or verbs"},
        {"latency --reconnect --repeats 4",
         "--reconnect does not apply to transport mpi: an MPI library opens its connections by itself and keeps them "
         "until MPI_Finalize; start the run again, or use --transport tcp, ucx, ofi, verbs, cuda-p2p or hip-p2p"},
        {"latency --transport null --device eth0",
         "--device does not apply to transport null: use --transport tcp, ucx, ofi or verbs"},
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
        {"latency --window 4", "--window does not apply to latency: the kernel has one message in flight"},
        {"exchange --buffers single", "--buffers does not apply to exchange: the kernel has one message in flight"},
        {"latency --workers 1:1", "--workers does not apply to latency: only latency_mt and latency_mp have workers"},
        {"bandwidth --win create", "--win does not apply to bandwidth: the kernel uses no RMA window"},
        {"bandwidth --sync lock",
         "--sync does not apply to bandwidth: the kernel has no choice of RMA synchronisation"},
        {"rpc_put --sync lock", "--sync does not apply to rpc_put: the kernel has no choice of RMA synchronisation"},
        {"put_latency --server-flight 2",
         "--server-flight does not apply to put_latency: the kernel sends no requests"},
        {"barrier --retest 2", "--retest does not apply to pattern world: it has no pairs"},
        {"exchange --directions single", "--directions does not apply to exchange: both directions run at once"},
        {"put_bibandwidth --directions single",
         "--directions does not apply to put_bibandwidth: both directions run at once"},
        {"put_bibandwidth --sync flush",
         "--sync flush does not apply to put_bibandwidth: both ends must take part, use pscw or fence"},
    };
    for (const auto& [line, message] : lines) CHECK(line_refusal(line) == message);
}

TEST_CASE("options that a pattern does not know are refused, not ignored") {
    const std::pair<const char*, const char*> lines[] = {
        {"latency --pattern rounds", "--pattern rounds requires --rounds or --rounds-file: they hold the rounds"},
        {"latency --pattern rounds --rounds 0-1 --rounds-file f",
         "--rounds excludes --rounds-file: give the rounds once"},
        {"latency --rounds 0-1", "--rounds does not apply to pattern pair: use --pattern rounds"},
        {"latency --rounds-file f", "--rounds-file does not apply to pattern pair: use --pattern rounds"},
        {"rpc_put --servers 2", "--servers does not apply to pattern pair: use --pattern clients-servers"},
        {"latency --victims 2", "--victims does not apply to pattern pair: use --pattern victim-aggressor"},
        {"latency --aggressor incast", "--aggressor does not apply to pattern pair: use --pattern victim-aggressor"},
        {"bandwidth --pattern fan-in --directions single",
         "--directions does not apply to pattern fan-in: its direction is fixed"},
        {"bandwidth --pattern fan-out --retest 1", "--retest does not apply to pattern fan-out: it has no pairs"},
        {"latency --pattern victim-aggressor --order serial",
         "--order does not apply to pattern victim-aggressor: all groups of its rounds run at once"},
    };
    for (const auto& [line, message] : lines) CHECK(line_refusal(line) == message);
}

TEST_CASE("a kernel runs on the patterns that have the groups it needs, and on no other") {
    for (const KernelInfo& kernel : kernels()) {
        const std::string name = kernel.name;
        int accepted = 0;
        for (const PatternInfo& pattern : patterns()) {
            const std::string kind = pattern.name;
            const bool served = kind == "clients-servers" && (name == "rpc_put" || name == "rpc_get");
            const bool of_all_ranks = kernel.collective() || name == "gpu_loopback";
            const bool right = pattern.shape == shape::world ? of_all_ranks
                               : pattern.has_stars()         ? name == "bandwidth" || served
                                                             : !of_all_ranks;
            const std::string extra = kind == "rounds" ? " --rounds 0-1" : "";
            const std::string message = line_refusal(name + " --pattern " + kind + extra);
            const std::string refused = name + " cannot run on pattern " + kind + ": choose ";
            CHECK(message.substr(0, right ? std::string::npos : refused.size()) == (right ? "accepted" : refused));
            accepted += right ? 1 : 0;
        }
        CHECK_MESSAGE(accepted > 0, name);
    }
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
    CHECK(refusal({"bandwidth", "--sizes", "0"}) == "--sizes 0 does not apply to bandwidth: start at 1");
    CHECK(refusal({"barrier", "--sizes", "8"}) == "--sizes 8 does not apply to barrier: leave --sizes out");
    CHECK(refusal({"allreduce", "--sizes", "6"}) == "--sizes 6 does not apply to allreduce: choose multiples of 4");
}

TEST_CASE("a kernel whose capabilities the transport does not offer is refused in one line") {
    const std::pair<const char*, const char*> lines[] = {
        {"put_latency --transport null",
         "put_latency requires a transport with rma, which null does not offer: choose another --transport"},
        {"rpc_get --transport null",
         "rpc_get requires a transport with rma, request_queue, which null does not offer: choose another "
         "--transport"},
        {"barrier --transport null",
         "barrier requires a transport with collectives, which null does not offer: choose another --transport"},
        {"latency_persistent --transport null",
         "latency_persistent requires a transport with persistent, which null does not offer: choose another "
         "--transport"},
        {"latency_mt --transport null",
         "latency_mt requires a transport with thread_lanes, which null does not offer: choose another --transport"},
        {"latency --barrier sample --samples 9 --batch 1 --transport null",
         "--barrier sample requires a transport with collectives, which null does not offer: choose another "
         "--transport"},
        {"accumulate --transport ucx",
         "accumulate requires a transport with accumulation, which ucx does not offer: choose another --transport"},
        {"latency --transport null", "accepted"},
        {"rpc_get --transport corrupt", "accepted"},
    };
    for (const auto& [line, message] : lines) CHECK(line_refusal(line) == message);
}

TEST_CASE("a window that the transport does not have is refused, and its default is one that the transport has") {
    CHECK(line_refusal("put_latency --transport ofi --win allocate") ==
          "--win allocate does not apply to transport ofi: choose one of create");
    CHECK(line_refusal("put_latency --transport ucx --sync fence") ==
          "--sync fence does not apply to transport ucx: choose one of flush flush_local pscw");
    CHECK(row_of("put_latency").win == "allocate");
    CHECK(row_of("put_latency --transport ofi").win == "create");
    CHECK(row_of("get_accumulate --transport ofi").sync == "flush");
    CHECK(row_of("put_bibandwidth --transport ofi").sync == "pscw");
}

TEST_CASE("the options that kernels and patterns list are options that do not apply everywhere") {
    const auto check = [](const char* list, bool of_kernel) {
        std::istringstream words(list);
        for (std::string word; words >> word;) {
            CAPTURE(word);
            const OptionInfo& option = row_named(row_options(), word, "option");
            CHECK((of_kernel ? option.kernels : option.patterns) != Applies::any);
        }
    };
    for (const KernelInfo& kernel : kernels()) check(kernel.options, true);
    for (const PatternInfo& pattern : patterns()) check(pattern.options, false);
    for (const KernelInfo& kernel : kernels()) {
        CHECK(kernel.accepts("win") == kernel.one_sided());
        CHECK(std::string(kernel.win).empty() == !kernel.accepts("win"));
        CHECK(std::string(kernel.sync).empty() == !kernel.one_sided());
        CHECK(kernel.accepts("sync") == (kernel.one_sided() && !kernel.needs(capability::request_queue)));
        CHECK(kernel.accepts("directions") == !kernel.bidirectional);
    }
}

TEST_CASE("samples and iterations have no upper limit") {
    CHECK(row_of("latency --samples 100000000").stop.samples.value() == 100'000'000);
    CHECK(row_of("latency --iterations 100000000").iterations_for(8).value() == 100'000'000);
}

TEST_CASE("a precision is a fraction") {
    CHECK(refusal({"latency", "--precision", "2"}) == "--precision 2: give a number between 0 and 1");
}

TEST_CASE("the help names every option once") {
    const std::string text = help_text();
    for (const OptionInfo& option : row_options()) {
        const std::string name = std::string("\n      --") + option.name + (option.argument ? " " : "  ");
        CAPTURE(name);
        CHECK(text.find(name) != std::string::npos);
        CHECK(text.find(name) == text.rfind(name));
    }
}

TEST_CASE("rules that contradict each other are refused") {
    const std::pair<const char*, const char*> lines[] = {
        {"latency --iterations 5 --samples 5", "--iterations excludes --samples: give one rule for when to stop"},
        {"latency --iterations 5 --precision 0.1", "--iterations excludes --precision: give one rule for when to stop"},
        {"latency --transport null --validate", "--validate does not apply to transport null: it moves nothing"},
        {"latency --batch 2 --validate", "--validate excludes --batch: every message is checked on its own"},
        {"bandwidth --buffers single --validate",
         "--validate excludes --buffers single: the messages of a window would overwrite each other"},
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
    CHECK(parse_command_line({"--list"}).list);
}

TEST_CASE("a request has options of its run and rows") {
    const Options launch = parse_command_line({"--serve", "-q"});
    const Request request =
        parse_request(launch, "--output a b.run\n--resume\n--epoch 1.5\nlatency\n# no row\nbandwidth\n");
    CHECK(request.options.output == "a b.run");
    CHECK(request.options.epoch.value() == 1.5);
    CHECK((request.options.quiet && request.options.resume));
    CHECK(request.options.rows.size() == 2);
    CHECK(request.words == std::vector<std::string>{"--output", "a b.run", "--resume", "--epoch", "1.5"});
    for (const char* text : {"--serve\nlatency\n", "--output\nlatency\n", "--epoch 1\nlatency\n", "--output a.run\n"})
        CHECK_THROWS_AS_MESSAGE(parse_request(launch, text), Error, text);
}

#include "spec/options.hpp"

#include <getopt.h>
// SimGrid wraps it in one that keeps optind to itself, so that only the first command line of a process is parsed.
#undef getopt_long

#include <algorithm>
#include <set>
#include <sstream>

#include "base/errors.hpp"
#include "base/table.hpp"
#include "kernels/kernel.hpp"
#include "spec/benchmarks.hpp"

namespace fablint {

namespace {

const std::vector<Rule<Options>>& run_rules() {
    using O = Options;
    using S = const std::string&;
    static const std::vector<Rule<Options>> rules = {
        {"output", 'o', true, [](O& o, S a) { o.output = a; }},
        {"plan", 0, true, [](O& o, S a) { o.plan = a; }},
        {"resume", 0, false, [](O& o, S) { o.resume = true; }},
        {"epoch", 0, true, [](O& o, S a) { o.epoch = parse_positive("epoch", a, true); }},
        {"watchdog", 0, true, [](O& o, S a) { o.watchdog_s = parse_positive("watchdog", a, true); }},
        {"private-files", 0, false, [](O& o, S) { o.private_files = true; }},
        {"counters", 0, false, [](O& o, S) { o.counters = true; }},
        {"sysfs", 0, true, [](O& o, S a) { o.sysfs = a; }},
        {"ranks-per-nic", 0, true, [](O& o, S a) { o.ranks_per_nic = parse_count("ranks-per-nic", a, 1); }},
        {"expect-ranks", 0, true, [](O& o, S a) { o.expect_ranks = parse_count("expect-ranks", a, 1); }},
        {"threads", 0, false, [](O& o, S) { o.threads = true; }},
        {"quiet", 'q', false, [](O& o, S) { o.quiet = true; }},
        {"list", 0, false, [](O& o, S) { o.action = O::Action::list; }},
        {"version", 0, false, [](O& o, S) { o.action = O::Action::version; }},
        {"help", 'h', false, [](O& o, S) { o.action = O::Action::help; }},
    };
    return rules;
}

// getopt_long over both tables at once. `run` may be null (plan files hold row options only).
struct Parsed {
    RowOptions row;
    std::vector<std::string> positional;
    std::set<std::string> given;
};

Parsed parse_words(const std::vector<std::string>& words, Options* run) {
    std::vector<option> table;
    std::string letters = ":";
    const auto enter = [&](const auto& rule, int code) {
        table.push_back({rule.name, rule.argument ? required_argument : no_argument, nullptr, code});
        if (rule.letter != 0) letters += std::string(1, static_cast<char>(rule.letter)) + (rule.argument ? ":" : "");
    };
    constexpr int first_row_code = 1000;
    constexpr int first_run_code = 2000;
    for (std::size_t i = 0; i < row_rules().size(); ++i) enter(row_rules()[i], first_row_code + static_cast<int>(i));
    if (run != nullptr)
        for (std::size_t i = 0; i < run_rules().size(); ++i)
            enter(run_rules()[i], first_run_code + static_cast<int>(i));
    table.push_back({nullptr, 0, nullptr, 0});

    std::vector<std::string> storage = words;
    storage.insert(storage.begin(), "fablint-engine");
    std::vector<char*> arguments;
    for (std::string& word : storage) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int count = static_cast<int>(storage.size());

    Parsed parsed;
    parsed.row.stop.precision = std::nullopt;
    optind = 0;  // glibc: start anew
    opterr = 0;
    for (int code = 0; (code = getopt_long(count, arguments.data(), letters.c_str(), table.data(), nullptr)) != -1;) {
        const std::string word = arguments[static_cast<std::size_t>(std::max(1, optind - 1))];
        if (code == ':') throw usage_error(word + " needs a value");
        if (code == '?') throw usage_error("unknown option " + word + ": see fablint-engine --help");
        const std::string argument = optarg != nullptr ? optarg : "";
        if (code >= first_row_code && code < first_run_code) {
            const auto& rule = row_rules()[static_cast<std::size_t>(code - first_row_code)];
            rule.apply(parsed.row, argument);
            parsed.given.insert(rule.name);
            continue;
        }
        for (std::size_t i = 0; i < run_rules().size(); ++i)
            if (code == run_rules()[i].letter || code == first_run_code + static_cast<int>(i))
                run_rules()[i].apply(*run, argument);
    }
    for (int i = optind; i < count; ++i) parsed.positional.emplace_back(arguments[static_cast<std::size_t>(i)]);
    return parsed;
}

RowOptions finished(Parsed parsed) {
    if (parsed.positional.empty()) throw usage_error("no kernel: see fablint-engine --list");
    if (parsed.positional.size() > 1)
        throw usage_error("one kernel per row, not '" + parsed.positional[0] + "' and '" + parsed.positional[1] + "'");
    return finished_row(std::move(parsed.row), parsed.positional.front(), parsed.given);
}

// A benchmark's name stands for its row; the user's own options come after it and override. Another rule of when to
// stop takes the place of the benchmark's count, a precision also of its barriers, since ranks then stop at different
// counts, and a check of every message that of its single buffer.
Parsed parse_with_benchmark(const std::vector<std::string>& words, Options* run) {
    Parsed parsed = parse_words(words, run);
    const Benchmark* benchmark = parsed.positional.size() == 1 ? find_benchmark(parsed.positional.front()) : nullptr;
    if (benchmark == nullptr) return parsed;
    std::vector<std::string> both = benchmark->words();
    both.insert(both.end(), words.begin(), words.end());
    const auto gave = [own = std::move(parsed.given)](const char* option) { return own.count(option) > 0; };
    parsed = parse_words(both, run);
    parsed.positional.pop_back();  // the benchmark's name, behind its kernel
    if (!gave("iterations") && (gave("samples") || gave("precision"))) parsed.row.iterations.reset();
    if (gave("precision") && !gave("barrier")) parsed.row.barrier_each = false;
    if (gave("validate") && !gave("buffers")) parsed.row.single_buffer = false;
    return parsed;
}

}  // namespace

Options parse_command_line(const std::vector<std::string>& words) {
    Options options;
    Parsed parsed = parse_with_benchmark(words, &options);
    if (options.action != Options::Action::run) return options;
    const bool row_given = !parsed.positional.empty() || !parsed.given.empty();
    if (options.plan.empty()) {
        options.rows.push_back(finished(std::move(parsed)));
    } else if (row_given) {
        throw usage_error("row options and --plan exclude each other: put the row into the plan file");
    }
    if (options.resume && options.output.empty()) throw usage_error("--resume needs -o DIR, the run to go on with");
    if (options.epoch && !options.resume) throw usage_error("--epoch is for --resume");
    return options;
}

std::vector<RowOptions> parse_plan(const std::string& text, const std::string& name) {
    std::vector<RowOptions> rows;
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        std::istringstream stream(line.substr(0, line.find('#')));
        std::vector<std::string> words;
        for (std::string word; stream >> word;) words.push_back(word);
        if (words.empty()) continue;
        try {
            rows.push_back(finished(parse_with_benchmark(words, nullptr)));
        } catch (const Error& error) {
            throw usage_error(name + ":" + std::to_string(number) + ": " + error.what());
        }
    }
    if (rows.empty())
        throw usage_error(name + ": no row in the plan: write one per line, such as latency --pattern pair");
    return rows;
}

void name_rows(std::vector<RowOptions>& rows) {
    std::set<std::string> taken;
    for (const RowOptions& row : rows)
        if (!row.name.empty() && !taken.insert(row.name).second)
            throw usage_error("--name " + row.name + " is given to two rows");
    for (RowOptions& row : rows) {
        if (!row.name.empty()) continue;
        row.name = row.kernel;
        for (int number = 2; !taken.insert(row.name).second; ++number)
            row.name = row.kernel + "-" + std::to_string(number);
    }
}

std::string help_text() {
    return "usage: mpiexec -n N fablint-engine KERNEL [options]\n"
           "       mpiexec -n N fablint-engine --plan FILE [-o DIR]\n"
           "\n"
           "run:  -o, --output DIR   write the run directory DIR    --plan FILE        rows, one per line; - is stdin\n"
           "      --resume           go on with DIR                 --epoch SECONDS    resume: origin of `started`\n"
           "      --watchdog SECONDS name a silent rank (60; 0 off) --private-files    hosts share no file system\n"
           "      --counters         NIC counters around each row   --ranks-per-nic K  bind ranks to NICs\n"
           "      --threads          MPI_THREAD_MULTIPLE            --sysfs DIR        facts from there (/sys)\n"
           "      --expect-ranks N   refuse another number          -q, --quiet        no progress\n"
           "      --list             what can be measured           --version          -h, --help\n"
           "row:  --pattern P        pair pairs all-pairs bisection random rounds fan-in fan-out clients-servers\n"
           "                         world victim-aggressor (pair; collectives: world)\n"
           "      --matchings K      for random (8)                 --rounds LIST      for rounds: 0-1,2-3;0-2\n"
           "      --rounds-file FILE for rounds, lines as 0-1 2-3   --servers N        for clients-servers (1)\n"
           "      --victims K        pairs (n/10)                   --aggressor A      incast or all-to-all (incast)\n"
           "      --order O          parallel or serial (parallel)  --repeats K        (1)\n"
           "      --directions D     both or forward (both)         --seed N           of the schedule (1)\n"
           "      --sizes LIST       8,1K or 1K:4M (the kernel's)   --window N         in flight (64, <= 16 MiB)\n"
           "      --buffers B        distinct or single (distinct)  --warmup N[,M]     untimed messages (10)\n"
           "      --barrier B        start or sample (start)        --mean M           of samples or loop (samples)\n"
           "      --iterations N[,M] exactly; M above 8 KiB         --samples N        stop after N samples\n"
           "      --budget SECONDS   per round (1)                  --precision R      of the median (0.02)\n"
           "      --batch N          messages per sample            --workers S:R      for latency_mt, latency_mp "
           "(1:2)\n"
           "      --win W            create allocate dynamic        --sync S           lock flush flush_local "
           "lock_all\n"
           "      --server-flight N  rpc requests at once (128)                        pscw fence\n"
           "      --transport T      mpi null corrupt (mpi)         --memory M         host (host)\n"
           "      --validate         check every byte               --histogram        store it for every pair\n"
           "      --retest K         slowest pairs once more        --name NAME        of the row\n"
           "      --only-rounds LIST 0-3,17 or none (resume)\n"
           "\n"
           "KERNEL may be the name of a benchmark of --list, such as osu_mbw_mr.\n"
           "example: mpiexec -n 8 fablint-engine latency --pattern all-pairs --sizes 8,1M -o night.run\n"
           "Everything: docs/reference/engine.md\n";
}

}  // namespace fablint

#include "options.hpp"

#include <getopt.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>
#include <sstream>

#include "errors.hpp"
#include "kernel.hpp"
#include "memory.hpp"
#include "pattern.hpp"
#include "table.hpp"
#include "transport.hpp"

namespace fablint {

namespace {

constexpr std::size_t largest_message = (std::size_t{1} << 31) - 1;

std::int64_t parse_integer(const std::string& option, const std::string& text, std::int64_t least) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || value < least)
        throw usage_error("--" + option + " " + text + ": give a whole number of at least " + std::to_string(least));
    if (errno == ERANGE) throw usage_error("--" + option + " " + text + ": the number is too large");
    return value;
}

int parse_count(const std::string& option, const std::string& text, int least) {
    constexpr std::int64_t most = 1'000'000;
    const std::int64_t value = parse_integer(option, text, least);
    if (value > most) throw usage_error("--" + option + " " + text + ": at most " + std::to_string(most));
    return static_cast<int>(value);
}

double parse_positive(const std::string& option, const std::string& text, bool zero_too = false) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0.0 || (value == 0.0 && !zero_too))
        throw usage_error("--" + option + " " + text + ": give a number above 0");
    return value;
}

std::size_t parse_size(const std::string& text) {
    char* end = nullptr;
    const bool digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
    const unsigned long long value = digit ? std::strtoull(text.c_str(), &end, 10) : 0;
    unsigned long long unit = 1;
    if (digit && *end != '\0') {
        const std::size_t power = std::string("KMG").find(static_cast<char>(std::toupper(*end)));
        unit = power == std::string::npos || end[1] != '\0' ? 0 : 1ULL << (10 * (power + 1));
    }
    if (!digit || unit == 0) throw usage_error("size '" + text + "': give bytes such as 8, 64K or 1M (powers of 1024)");
    if (value > largest_message / unit) throw usage_error("size '" + text + "': at most 2 GiB - 1");
    return value * unit;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    if (text.empty() || text.back() == separator) parts.emplace_back();
    return parts;
}

std::vector<std::pair<std::int64_t, std::int64_t>> parse_ranges(const std::string& text) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    if (text == "none") return ranges;
    for (const std::string& part : split(text, ',')) {
        const std::vector<std::string> ends = split(part, '-');
        const std::int64_t first = parse_integer("only-rounds", ends.front(), 0);
        const std::int64_t last = ends.size() == 2 ? parse_integer("only-rounds", ends.back(), first) : first;
        if (ends.size() > 2) throw usage_error("--only-rounds " + part + ": write ranges as 0-3,17");
        ranges.emplace_back(first, last);
    }
    return ranges;
}

std::string number_text(double value) {
    std::ostringstream stream;
    stream << value;
    return stream.str();
}

std::string sizes_text(const std::vector<std::size_t>& sizes) {
    std::string text;
    for (const std::size_t size : sizes) text += (text.empty() ? "" : ",") + std::to_string(size);
    return text;
}

// One row of the grammar: the option, and what its argument does.
template <typename Target>
struct Rule {
    const char* name;
    int letter;  // 0: long form only
    bool argument;
    std::function<void(Target&, const std::string&)> apply;
};

const std::vector<Rule<RowOptions>>& row_rules() {
    using R = RowOptions;
    using S = const std::string&;
    static const std::vector<Rule<RowOptions>> rules = {
        {"name", 0, true,
         [](R& r, S a) {
             if (a.empty() || a.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
                                  std::string::npos)
                 throw usage_error("--name " + a + ": letters, digits, - and _ only, since it names a folder");
             if (a == "report" || a.rfind("launch-", 0) == 0)
                 throw usage_error("--name " + a + ": the run directory keeps that name for itself, choose another");
             r.name = a;
         }},
        {"pattern", 0, true, [](R& r, S a) { r.pattern = row_named(patterns(), a, "pattern").name; }},
        {"matchings", 0, true, [](R& r, S a) { r.matchings = parse_count("matchings", a, 1); }},
        {"rounds-file", 0, true, [](R& r, S a) { r.rounds_file = a; }},
        {"order", 0, true,
         [](R& r, S a) {
             if (a != "parallel" && a != "serial")
                 throw usage_error("unknown order '" + a + "': choose parallel or serial");
             r.serial = a == "serial";
         }},
        {"repeats", 0, true, [](R& r, S a) { r.repeats = parse_count("repeats", a, 1); }},
        {"seed", 0, true, [](R& r, S a) { r.seed = static_cast<std::uint64_t>(parse_integer("seed", a, 0)); }},
        {"sizes", 0, true, [](R& r, S a) { r.sizes = parse_sizes(a); }},
        {"window", 0, true, [](R& r, S a) { r.window = parse_count("window", a, 1); }},
        {"warmup", 0, true, [](R& r, S a) { r.warmup = parse_count("warmup", a, 0); }},
        {"samples", 0, true, [](R& r, S a) { r.stop.samples = parse_integer("samples", a, 1); }},
        {"budget", 0, true, [](R& r, S a) { r.stop.budget_s = parse_positive("budget", a); }},
        {"precision", 0, true, [](R& r, S a) { r.stop.precision = parse_positive("precision", a); }},
        {"batch", 0, true, [](R& r, S a) { r.batch = parse_count("batch", a, 1); }},
        {"transport", 0, true, [](R& r, S a) { r.transport = transport_named(a).name; }},
        {"memory", 0, true, [](R& r, S a) { r.memory = memory_named(a).name; }},
        {"validate", 0, false, [](R& r, S) { r.validate = true; }},
        {"histogram", 0, false, [](R& r, S) { r.histogram = true; }},
        {"only-rounds", 0, true, [](R& r, S a) { r.only_rounds = parse_ranges(a); }},
    };
    return rules;
}

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

// What depends on several options together.
RowOptions finished(Parsed parsed) {
    RowOptions& row = parsed.row;
    if (parsed.positional.empty()) throw usage_error("no kernel: choose " + names_of(kernels()));
    if (parsed.positional.size() > 1)
        throw usage_error("one kernel per row, not '" + parsed.positional[0] + "' and '" + parsed.positional[1] + "'");
    const KernelInfo& info = kernel_named(parsed.positional[0]);
    row.kernel = info.name;
    const bool stops =
        parsed.given.count("samples") + parsed.given.count("budget") + parsed.given.count("precision") > 0;
    if (!stops) {
        row.stop.budget_s = 1.0;
        row.stop.precision = 0.02;
    }
    if (row.sizes.empty()) row.sizes = parse_sizes("1:4M");
    if (!info.empty_messages && std::count(row.sizes.begin(), row.sizes.end(), 0U) > 0)
        throw usage_error("size 0 has no meaning for " + row.kernel + ": start at 1");
    if (row.window && !info.get().windowed())
        throw usage_error("--window has no meaning for " + row.kernel + ": only for windowed kernels");
    if ((row.pattern == "rounds") != !row.rounds_file.empty())
        throw usage_error(row.pattern == "rounds" ? "--pattern rounds needs --rounds-file"
                                                  : "--rounds-file needs --pattern rounds");
    if (row.validate && !transport_named(row.transport).moves_bytes)
        throw usage_error("--validate is impossible on transport " + row.transport + ", which moves nothing");
    if (row.validate && row.batch.value_or(1) != 1)
        throw usage_error("--validate checks every message by itself: leave --batch out");
    return row;
}

}  // namespace

std::vector<std::size_t> parse_sizes(const std::string& text) {
    std::vector<std::size_t> sizes;
    for (const std::string& part : split(text, ',')) {
        const std::vector<std::string> ends = split(part, ':');
        if (ends.size() > 2) throw usage_error("sizes '" + part + "': write a range as 1K:4M");
        const std::size_t first = parse_size(ends.front());
        const std::size_t last = parse_size(ends.back());
        if (last < first) throw usage_error("sizes '" + part + "': the range is empty, write the smaller end first");
        for (std::size_t size = first; size <= last; size = size == 0 ? 1 : size * 2) sizes.push_back(size);
    }
    std::set<std::size_t> seen;
    for (const std::size_t size : sizes)
        if (!seen.insert(size).second) throw usage_error("size " + std::to_string(size) + " is given twice");
    return sizes;
}

int RowOptions::window_for(std::size_t bytes) const {
    if (!kernel_named(kernel).get().windowed()) return 1;
    constexpr std::size_t messages = 64;
    constexpr std::size_t in_flight = std::size_t{16} << 20;
    if (window) return *window;
    return static_cast<int>(std::clamp<std::size_t>(in_flight / std::max<std::size_t>(bytes, 1), 1, messages));
}

bool RowOptions::wants_round(std::int64_t round) const {
    if (!only_rounds) return true;
    return std::any_of(only_rounds->begin(), only_rounds->end(),
                       [&](const auto& range) { return range.first <= round && round <= range.second; });
}

std::string RowOptions::text() const {
    std::string text = kernel + " --name " + name + " --pattern " + pattern;
    if (pattern == "random") text += " --matchings " + std::to_string(matchings);
    if (!rounds_file.empty()) text += " --rounds-file " + rounds_file;
    text += std::string(" --order ") + (serial ? "serial" : "parallel") + " --repeats " + std::to_string(repeats) +
            " --seed " + std::to_string(seed) + " --sizes " + sizes_text(sizes);
    if (window) text += " --window " + std::to_string(*window);
    text += " --warmup " + std::to_string(warmup) + " --budget " + number_text(stop.budget_s);
    if (stop.samples) text += " --samples " + std::to_string(*stop.samples);
    if (stop.precision) text += " --precision " + number_text(*stop.precision);
    if (batch) text += " --batch " + std::to_string(*batch);
    text += " --transport " + transport + " --memory " + memory;
    if (validate) text += " --validate";
    if (histogram) text += " --histogram";
    return text;
}

Options parse_command_line(const std::vector<std::string>& words) {
    Options options;
    Parsed parsed = parse_words(words, &options);
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
            rows.push_back(finished(parse_words(words, nullptr)));
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
           "      -q, --quiet        no progress                    --list             what can be measured\n"
           "      --version          -h, --help\n"
           "row:  --pattern P        pair pairs all-pairs bisection random rounds (pair)\n"
           "      --matchings K      for random (8)                 --rounds-file FILE for rounds, lines as 0-1 2-3\n"
           "      --order O          parallel or serial (parallel)  --repeats K        (1)\n"
           "      --seed N           of the schedule (1)            --sizes LIST       8,1K or 1K:4M (1:4M)\n"
           "      --window N         in flight (64, <= 16 MiB)      --warmup N         untimed messages (10)\n"
           "      --samples N        stop after N samples           --budget SECONDS   per round (1)\n"
           "      --precision R      of the median (0.02)           --batch N          messages per sample "
           "(calibrated)\n"
           "      --transport T      mpi null corrupt (mpi)         --memory M         host (host)\n"
           "      --validate         check every byte               --histogram        store it for every pair\n"
           "      --name NAME        of the row                     --only-rounds LIST 0-3,17 or none (resume)\n"
           "\n"
           "example: mpiexec -n 8 fablint-engine latency --pattern all-pairs --sizes 8,1M -o night.run\n"
           "Everything: docs/reference/engine.md\n";
}

}  // namespace fablint

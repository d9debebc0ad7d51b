#include "spec/options.hpp"

#include <getopt.h>
// SimGrid wraps it in a function with its own optind, which parses only the first command line of a process.
#undef getopt_long

#include <algorithm>
#include <set>
#include <sstream>

#include "base/errors.hpp"
#include "base/table.hpp"
#include "spec/benchmarks.hpp"

namespace fablint {

namespace {

using Texts = const std::string&;

// How a value of a run option is stored, by its kind in registry/options.inc.
namespace run_kind {

struct text {
    static constexpr bool argument = true;
    static void read(std::string& field, const char*, Texts value) { field = value; }
};

struct flag {
    static constexpr bool argument = false;
    static void read(bool& field, const char*, Texts) { field = true; }
};

struct count {
    static constexpr bool argument = true;
    static void read(int& field, const char* option, Texts value) { field = parse_count(option, value, 1); }
};

struct seconds {
    static constexpr bool argument = true;
    template <typename Field>
    static void read(Field& field, const char* option, Texts value) {
        field = parse_positive(option, value, true);
    }
};

// Selects what the engine does instead of measuring.
struct action {
    static constexpr bool argument = false;
    static void read(bool& field, const char*, Texts) { field = true; }
};

}  // namespace run_kind

struct RunOption {
    const char* name = "";
    int letter = 0;  // 0: long form only
    bool argument = false;
    const char* value_name = "";
    const char* description = "";
    bool of_request = false;  // may be given in a request of --serve
    void (*read)(Options& options, Texts text) = nullptr;
};

const std::vector<RunOption>& run_options() {
    static const std::vector<RunOption> table = {
#define RUN_OPTION(text_, kind_, field_, ...)                          \
    ROW_OF_TABLE(                                                      \
        RunOption, name = text_, argument = run_kind::kind_::argument, \
        read = [](Options& options, Texts text) { run_kind::kind_::read(options.field_, text_, text); }, __VA_ARGS__),
#include "registry/options.inc"
    };
    return table;
}

// A command line or a plan line, its row options not read yet.
struct Line {
    std::vector<std::string> positional;
    OptionTexts row;
};

// getopt_long over both tables at once. `run` may be null: plan files hold row options only.
Line parse_words(const std::vector<std::string>& words, Options* run) {
    std::vector<option> table;
    std::string letters = ":";
    constexpr int first_row_code = 1000;
    constexpr int first_run_code = 2000;
    for (std::size_t i = 0; i < row_options().size(); ++i)
        table.push_back({row_options()[i].name, row_options()[i].argument ? required_argument : no_argument, nullptr,
                         first_row_code + static_cast<int>(i)});
    for (std::size_t i = 0; run != nullptr && i < run_options().size(); ++i) {
        const RunOption& rule = run_options()[i];
        table.push_back({rule.name, rule.argument ? required_argument : no_argument, nullptr,
                         first_run_code + static_cast<int>(i)});
        if (rule.letter != 0) letters += std::string(1, static_cast<char>(rule.letter)) + (rule.argument ? ":" : "");
    }
    table.push_back({nullptr, 0, nullptr, 0});

    std::vector<std::string> storage = words;
    storage.insert(storage.begin(), "fablint-engine");
    std::vector<char*> arguments;
    for (std::string& word : storage) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int count = static_cast<int>(storage.size());

    Line line;
    optind = 0;  // glibc: reset the parser
    opterr = 0;
    for (int code = 0; (code = getopt_long(count, arguments.data(), letters.c_str(), table.data(), nullptr)) != -1;) {
        const std::string word = arguments[static_cast<std::size_t>(std::max(1, optind - 1))];
        if (code == ':') throw usage_error(word + " needs a value");
        if (code == '?') throw usage_error("unknown option " + word + ": see fablint-engine --help");
        const std::string argument = optarg != nullptr ? optarg : "";
        if (code >= first_row_code && code < first_run_code) {
            line.row[row_options()[static_cast<std::size_t>(code - first_row_code)].name] = argument;
            continue;
        }
        for (std::size_t i = 0; i < run_options().size(); ++i)
            if (code == run_options()[i].letter || code == first_run_code + static_cast<int>(i))
                run_options()[i].read(*run, argument);
    }
    for (int i = optind; i < count; ++i) line.positional.emplace_back(arguments[static_cast<std::size_t>(i)]);
    return line;
}

// A benchmark's name stands for its row, whose options the user's options override.
RowOptions row_of(const Line& line) {
    const std::vector<std::string>& names = line.positional;
    if (names.empty()) throw usage_error("no kernel: see fablint-engine --list");
    if (names.size() > 1) throw usage_error("one kernel per row, not '" + names[0] + "' and '" + names[1] + "'");
    const Benchmark* benchmark = find_benchmark(names.front());
    if (benchmark == nullptr) return make_row(names.front(), line.row);
    const Line own = parse_words(benchmark->words(), nullptr);
    return make_row(own.positional.front(), overridden(own.row, line.row));
}

void check_resume(const Options& options) {
    if (options.resume && options.output.empty()) throw usage_error("--resume needs -o DIR, the run to continue");
    if (options.epoch && !options.resume) throw usage_error("--epoch needs --resume");
}

}  // namespace

Options parse_run_options(const std::vector<std::string>& words) {
    Options options;
    parse_words(words, &options);
    return options;
}

Options parse_command_line(const std::vector<std::string>& words) {
    Options options;
    const Line line = parse_words(words, &options);
    if (options.help || options.version || options.list || options.mpi_library) return options;
    const bool has_row = !line.positional.empty() || !line.row.empty();
    if (options.serve) {
        if (has_row || !options.plan.empty() || !options.output.empty() || options.resume)
            throw usage_error("--serve takes rows, -o and --resume from standard input, not from the command line");
    } else if (options.plan.empty()) {
        options.rows.push_back(row_of(line));
    } else if (has_row) {
        throw usage_error("row options and --plan exclude each other: put the row into the plan file");
    }
    if (!options.only_ranks.empty()) throw usage_error("--only-ranks is an option of requests (--serve)");
    check_resume(options);
    return options;
}

Request parse_request(const Options& launch, const std::string& text) {
    Request request{launch, {}};
    std::string plan;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.front() != '-') {
            plan += line + '\n';
            continue;
        }
        const std::size_t space = line.find(' ');
        const std::string name = line.substr(0, space);
        const bool is_known = std::any_of(run_options().begin(), run_options().end(), [&](const RunOption& rule) {
            return rule.of_request && (name == std::string("--") + rule.name ||
                                       (rule.letter != 0 && name == std::string{'-', static_cast<char>(rule.letter)}));
        });
        if (!is_known) throw usage_error("a request of --serve has no option " + name);
        request.words.push_back(name);
        if (space != std::string::npos) request.words.push_back(line.substr(space + 1));
    }
    parse_words(request.words, &request.options);
    check_resume(request.options);
    request.options.rows = parse_plan(plan, "request");
    return request;
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
            rows.push_back(row_of(parse_words(words, nullptr)));
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

namespace {

std::string help_line(int letter, const std::string& name, const char* value_name, const char* description) {
    constexpr std::size_t width = 27;
    std::string option = letter == 0 ? "      --" : std::string("  -") + static_cast<char>(letter) + ", --";
    option += name + (*value_name == '\0' ? "" : " ") + value_name;
    if (option.size() < width) option.resize(width, ' ');
    return option + "  " + description + "\n";
}

}  // namespace

std::string help_text() {
    std::string text =
        "usage: mpiexec -n N fablint-engine KERNEL [options]\n"
        "       mpiexec -n N fablint-engine --plan FILE [-o DIR]\n"
        "       mpiexec -n N fablint-engine --serve\n"
        "       fablint-engine --rendezvous HOST:PORT --rank R --ranks N KERNEL [options]\n"
        "\n"
        "KERNEL is a kernel or a benchmark of --list, such as latency or osu_mbw_mr.\n"
        "\n"
        "run options:\n";
    for (const RunOption& option : run_options())
        text += help_line(option.letter, option.name, option.value_name, option.description);
    text += "\nrow options, on the command line or in each line of a plan; default in brackets:\n";
    for (const OptionInfo& option : row_options()) {
        const std::string own = option.default_text;
        const std::string description = option.description + (own.empty() ? "" : " [" + own + "]");
        text += help_line(0, option.name, option.value_name, description.c_str());
    }
    return text +
           "\n"
           "example: mpiexec -n 8 fablint-engine latency --pattern all-pairs --sizes 8,1M -o night.run\n"
           "reference: docs/reference/engine.md\n";
}

}  // namespace fablint

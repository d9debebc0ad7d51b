#include "spec/row.hpp"

#include <algorithm>

#include "base/errors.hpp"
#include "base/table.hpp"
#include "kernels/kernel.hpp"
#include "memories/memory.hpp"
#include "transports/transport.hpp"

namespace fablint {

namespace {

using Text = const std::string&;

std::string parse_name(Text text) {
    constexpr const char* allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (text.empty() || text.find_first_not_of(allowed) != std::string::npos)
        throw usage_error("--name " + text + ": letters, digits, - and _ only, since it names a folder");
    if (text == "report" || text == "rounds" || text == "launches" || text.rfind("launch-", 0) == 0)
        throw usage_error("--name " + text + ": the run directory keeps that name for itself, choose another");
    return text;
}

// One of two words: true when it is the second.
bool second_of(const std::string& option, const std::string& first, const std::string& second, Text text) {
    if (text != first && text != second)
        throw usage_error("unknown " + option + " '" + text + "': choose " + first + " or " + second);
    return text == second;
}

// N or N,M: for small and for large sizes.
template <typename Count>
BySize<Count> parse_by_size(const std::string& option, Text text, int least) {
    const std::vector<std::string> counts = split(text, ',');
    if (counts.size() > 2) throw usage_error("--" + option + " " + text + ": one number, or two as 1000,100");
    const auto small = static_cast<Count>(parse_integer(option, counts.front(), least));
    return {small, static_cast<Count>(parse_integer(option, counts.back(), least))};
}

void parse_workers(RowOptions& row, Text text) {
    const std::vector<std::string> ends = split(text, ':');
    if (ends.size() != 2) throw usage_error("--workers " + text + ": write senders:receivers as 1:2");
    row.senders = parse_count("workers", ends.front(), 1);
    row.receivers = parse_count("workers", ends.back(), 1);
    constexpr int most = 128;
    if (std::max(row.senders, row.receivers) > most)
        throw usage_error("--workers " + text + ": at most " + std::to_string(most) + " at each end");
}

template <typename Count>
std::string by_size_text(const BySize<Count>& count) {
    const std::string small = std::to_string(count.small);
    return count.small == count.large ? small : small + "," + std::to_string(count.large);
}

using Given = std::set<std::string>;

// The options that mean something for some kernels only.
void refuse_options_of_others(const RowOptions& row, const KernelInfo& info, const Given& given) {
    const auto refuse = [&](const char* option, bool meant, const std::string& why) {
        if (given.count(option) > 0 && !meant)
            throw usage_error(std::string("--") + option + " has no meaning for " + row.kernel + ": " + why);
    };
    const bool workers = row.kernel == "latency_mt" || row.kernel == "latency_mp";
    refuse("window", info.windowed, "only for windowed kernels");
    refuse("buffers", info.windowed, "only for windowed kernels");
    refuse("workers", workers, "only for latency_mt and latency_mp");
    refuse("win", info.one_sided(), "only for one-sided kernels");
    refuse("sync", info.uses == Uses::one_sided, "only for one-sided kernels");
    refuse("server-flight", info.uses == Uses::requests, "only for rpc_put and rpc_get");
    refuse("retest", info.uses != Uses::collectives, "a collective has no pairs");
    if (row.forward && info.mutual)
        throw usage_error("--directions forward has no meaning for " + row.kernel + ": both directions run at once");
}

// The options that mean something for some patterns only.
void refuse_options_of_other_patterns(const RowOptions& row, const KernelInfo& info, const Given& given) {
    const auto refuse = [&](const char* option, const char* pattern) {
        if (given.count(option) > 0 && row.pattern != pattern)
            throw usage_error(std::string("--") + option + " needs --pattern " + pattern);
    };
    refuse("rounds-file", "rounds");
    refuse("rounds", "rounds");
    refuse("servers", "clients-servers");
    refuse("victims", "victim-aggressor");
    refuse("aggressor", "victim-aggressor");
    if (row.pattern == "rounds" && row.rounds_file.empty() == row.rounds.empty())
        throw usage_error("--pattern rounds needs --rounds-file or --rounds");
    const Shape shape = pattern_named(row.pattern).shape;
    if (!info.runs_on(shape, row.pattern)) throw usage_error(row.kernel + " cannot run on pattern " + row.pattern);
    if (row.forward && shape != Shape::pairs)
        throw usage_error("--directions has no meaning for pattern " + row.pattern + ", which has one by itself");
    if (row.retest > 0 && shape != Shape::pairs) throw usage_error("--retest needs a pattern of pairs");
    if (row.pattern == "victim-aggressor" && row.serial)
        throw usage_error("--order serial has no meaning for victim-aggressor: the victims are measured at once");
}

void refuse_bad_stops(const RowOptions& row) {
    if (row.iterations && (row.stop.samples || row.stop.precision))
        throw usage_error("--iterations says when to stop: leave --samples and --precision out");
    if (!row.validate) return;
    if (!transport_named(row.transport).moves_bytes)
        throw usage_error("--validate is impossible on transport " + row.transport + ", which moves nothing");
    if (row.batch.value_or(1) != 1) throw usage_error("--validate checks every message by itself: leave --batch out");
    if (row.single_buffer) throw usage_error("--validate needs a buffer for every message: leave --buffers single out");
}

// A barrier before every sample is passed by all ranks equally often.
void refuse_unequal_barriers(const RowOptions& row, const KernelInfo& info, const Given& given) {
    if (!row.barrier_each) return;
    const std::string option = "--barrier sample";
    if (info.uses == Uses::collectives || (row.pattern != "pair" && row.pattern != "pairs"))
        throw usage_error(option + " needs --pattern pair or pairs, in which the same pairs meet all the time");
    if (row.serial) throw usage_error(option + " has no meaning with --order serial: one pair is measured at a time");
    if (!row.iterations && !row.stop.samples)
        throw usage_error(option + " needs --iterations or --samples: every rank takes as many samples");
    if (given.count("budget") > 0 || row.stop.precision)
        throw usage_error(option + ": every rank takes as many samples, leave --budget and --precision out");
    if (row.batch.value_or(0) != 1) throw usage_error(option + " needs --batch 1");
}

// Which synchronisations a kernel works with.
void choose_sync(RowOptions& row, const KernelInfo& info, const Given& given) {
    const bool both_put = row.kernel == "put_bibandwidth";
    const bool exclusive = row.kernel == "get_accumulate";  // as OSU
    if (given.count("sync") == 0) row.sync = both_put ? "pscw" : exclusive ? "lock" : "flush";
    const bool created =
        exclusive || row.kernel == "cas";  // Open MPI before 5 cannot swap in windows that it allocates
    if (given.count("win") == 0) row.win = created ? "create" : "allocate";
    if (info.uses == Uses::one_sided && both_put && !sync_named(row.sync).both_sides)
        throw usage_error("put_bibandwidth needs a synchronisation of both ends: --sync pscw or fence");
}

}  // namespace

const std::vector<Rule<RowOptions>>& row_rules() {
    using R = RowOptions;
    static const std::vector<Rule<RowOptions>> rules = {
        {"name", 0, true, [](R& r, Text a) { r.name = parse_name(a); }},
        {"pattern", 0, true, [](R& r, Text a) { r.pattern = pattern_named(a).name; }},
        {"matchings", 0, true, [](R& r, Text a) { r.matchings = parse_count("matchings", a, 1); }},
        {"rounds-file", 0, true, [](R& r, Text a) { r.rounds_file = a; }},
        {"rounds", 0, true, [](R& r, Text a) { r.rounds = a; }},
        {"order", 0, true, [](R& r, Text a) { r.serial = second_of("order", "parallel", "serial", a); }},
        {"repeats", 0, true, [](R& r, Text a) { r.repeats = parse_count("repeats", a, 1); }},
        {"seed", 0, true, [](R& r, Text a) { r.seed = static_cast<std::uint64_t>(parse_integer("seed", a, 0)); }},
        {"sizes", 0, true, [](R& r, Text a) { r.sizes = parse_sizes(a); }},
        {"window", 0, true, [](R& r, Text a) { r.window = parse_count("window", a, 1); }},
        {"warmup", 0, true, [](R& r, Text a) { r.warmup = parse_by_size<int>("warmup", a, 0); }},
        {"iterations", 0, true, [](R& r, Text a) { r.iterations = parse_by_size<std::int64_t>("iterations", a, 1); }},
        {"samples", 0, true, [](R& r, Text a) { r.stop.samples = parse_integer("samples", a, 1); }},
        {"budget", 0, true, [](R& r, Text a) { r.stop.budget_s = parse_positive("budget", a); }},
        {"precision", 0, true, [](R& r, Text a) { r.stop.precision = parse_positive("precision", a); }},
        {"batch", 0, true, [](R& r, Text a) { r.batch = parse_count("batch", a, 1); }},
        {"directions", 0, true, [](R& r, Text a) { r.forward = second_of("directions", "both", "forward", a); }},
        {"buffers", 0, true, [](R& r, Text a) { r.single_buffer = second_of("buffers", "distinct", "single", a); }},
        {"barrier", 0, true, [](R& r, Text a) { r.barrier_each = second_of("barrier", "start", "sample", a); }},
        {"mean", 0, true, [](R& r, Text a) { r.loop_mean = second_of("mean", "samples", "loop", a); }},
        {"workers", 0, true, [](R& r, Text a) { parse_workers(r, a); }},
        {"win", 0, true, [](R& r, Text a) { r.win = win_named(a).name; }},
        {"sync", 0, true, [](R& r, Text a) { r.sync = sync_named(a).name; }},
        {"servers", 0, true, [](R& r, Text a) { r.servers = parse_count("servers", a, 1); }},
        {"server-flight", 0, true, [](R& r, Text a) { r.server_flight = parse_count("server-flight", a, 1); }},
        {"victims", 0, true, [](R& r, Text a) { r.victims = parse_count("victims", a, 1); }},
        {"aggressor", 0, true, [](R& r, Text a) { r.incast = !second_of("aggressor", "incast", "all-to-all", a); }},
        {"retest", 0, true, [](R& r, Text a) { r.retest = parse_count("retest", a, 0); }},
        {"transport", 0, true, [](R& r, Text a) { r.transport = transport_named(a).name; }},
        {"memory", 0, true, [](R& r, Text a) { r.memory = memory_named(a).name; }},
        {"validate", 0, false, [](R& r, Text) { r.validate = true; }},
        {"histogram", 0, false, [](R& r, Text) { r.histogram = true; }},
        {"only-rounds", 0, true, [](R& r, Text a) { r.only_rounds = parse_ranges(a); }},
    };
    return rules;
}

RowOptions finished_row(RowOptions row, const std::string& kernel, const std::set<std::string>& given) {
    const KernelInfo& info = kernel_named(kernel);
    row.kernel = info.name;
    if (given.count("pattern") == 0) row.pattern = info.default_pattern();
    const bool stops = given.count("samples") + given.count("budget") + given.count("precision") > 0;
    if (!stops && !row.iterations) {
        row.stop.budget_s = 1.0;
        row.stop.precision = 0.02;
    }
    constexpr double an_hour = 3600.0;  // a count that was asked for is worth waiting for
    if (row.iterations && given.count("budget") == 0) row.stop.budget_s = an_hour;
    row.sizes_given = !row.sizes.empty();
    if (!row.sizes_given) row.sizes = parse_sizes(info.default_sizes);
    for (const std::size_t size : row.sizes)
        if (!info.takes(size))
            throw usage_error("size " + std::to_string(size) + " has no meaning for " + row.kernel + ": " +
                              info.sizes_hint());
    refuse_options_of_others(row, info, given);
    refuse_options_of_other_patterns(row, info, given);
    refuse_bad_stops(row);
    refuse_unequal_barriers(row, info, given);
    choose_sync(row, info, given);
    return row;
}

int RowOptions::window_for(std::size_t bytes, int fan) const {
    if (!kernel_named(kernel).windowed) return 1;
    constexpr std::size_t messages = 64;
    constexpr std::size_t to_one = std::size_t{16} << 20;
    constexpr std::size_t to_all = std::size_t{256} << 20;
    if (window) return *window;
    const std::size_t in_flight = std::min(to_one, to_all / static_cast<std::size_t>(std::max(fan, 1)));
    return static_cast<int>(std::clamp<std::size_t>(in_flight / std::max<std::size_t>(bytes, 1), 1, messages));
}

std::optional<std::int64_t> RowOptions::iterations_for(std::size_t bytes) const {
    if (!iterations) return std::nullopt;
    return iterations->at(bytes);
}

bool RowOptions::wants_nothing() const { return only_rounds && only_rounds->empty(); }

bool RowOptions::wants_round(std::int64_t round) const {
    if (!only_rounds) return true;
    return std::any_of(only_rounds->begin(), only_rounds->end(),
                       [&](const auto& range) { return range.first <= round && round <= range.second; });
}

std::string RowOptions::text() const {
    const KernelInfo& info = kernel_named(kernel);
    std::string text = kernel;
    const auto add = [&](const std::string& option, const std::string& value) { text += " --" + option + " " + value; };
    add("name", name);
    add("pattern", pattern);
    if (pattern == "random") add("matchings", std::to_string(matchings));
    if (!rounds_file.empty()) add("rounds-file", rounds_file);
    if (!rounds.empty()) add("rounds", rounds);
    if (pattern == "clients-servers") add("servers", std::to_string(servers));
    if (pattern == "victim-aggressor" && victims > 0) add("victims", std::to_string(victims));
    if (pattern == "victim-aggressor") add("aggressor", incast ? "incast" : "all-to-all");
    add("order", serial ? "serial" : "parallel");
    add("repeats", std::to_string(repeats));
    add("seed", std::to_string(seed));
    add("sizes", sizes_text(sizes));
    if (window) add("window", std::to_string(*window));
    if (single_buffer) add("buffers", "single");
    if (barrier_each) add("barrier", "sample");
    if (loop_mean) add("mean", "loop");
    if (forward) add("directions", "forward");
    if (kernel == "latency_mt" || kernel == "latency_mp")
        add("workers", std::to_string(senders) + ":" + std::to_string(receivers));
    if (info.one_sided()) add("win", win);
    if (info.uses == Uses::one_sided) add("sync", sync);
    if (info.uses == Uses::requests) add("server-flight", std::to_string(server_flight));
    if (retest > 0) add("retest", std::to_string(retest));
    add("warmup", by_size_text(warmup));
    if (!barrier_each) add("budget", number_text(stop.budget_s));
    if (iterations) add("iterations", by_size_text(*iterations));
    if (stop.samples) add("samples", std::to_string(*stop.samples));
    if (stop.precision) add("precision", number_text(*stop.precision));
    if (batch) add("batch", std::to_string(*batch));
    add("transport", transport);
    add("memory", memory);
    if (validate) text += " --validate";
    if (histogram) text += " --histogram";
    return text;
}

}  // namespace fablint

#include "spec/row.hpp"

#include <algorithm>

#include "base/errors.hpp"
#include "base/table.hpp"
#include "spec/option_kinds.hpp"

namespace fablint {

namespace {

template <typename Field, typename Value>
void assign(Field& field, Value&& value) {
    field = static_cast<Field>(std::forward<Value>(value));
}

// A combination of options that a row refuses, as in registry/options.inc.
struct Combination {
    const char* option = "";
    const char* value = "";
    const char* others = "";
    const char* other_value = "";
    const char* reason = "";
};

const std::vector<Combination>& exclusions() {
    static const std::vector<Combination> table = {
#define EXCLUDES(...) ROW_OF_TABLE(Combination, __VA_ARGS__),
#include "registry/options.inc"
    };
    return table;
}

const std::vector<Combination>& requirements() {
    static const std::vector<Combination> table = {
#define REQUIRES(...) ROW_OF_TABLE(Combination, __VA_ARGS__),
#include "registry/options.inc"
    };
    return table;
}

struct Absence {
    const char* option;
    const char* transport;
    const char* reason;
};

const std::vector<Absence>& absences() {
    static const std::vector<Absence> table = {
#define ABSENT(option, transport, reason) {option, transport, reason},
#include "registry/options.inc"
    };
    return table;
}

struct Replacement {
    const char* given;
    const char* replaced;
    const char* value;
};

const std::vector<Replacement>& replacements() {
    static const std::vector<Replacement> table = {
#define REPLACES(given, replaced, value) {given, replaced, value},
#include "registry/options.inc"
    };
    return table;
}

// Is the option given with that value? "": with any; "!x": with any other than x.
bool is_given(const OptionTexts& texts, const std::string& option, const std::string& value) {
    const auto given = texts.find(option);
    if (given == texts.end()) return false;
    if (!value.empty() && value.front() == '!') return given->second != value.substr(1);
    return value.empty() || given->second == value;
}

std::string written(const std::string& option, const std::string& value) {
    return "--" + option + (value.empty() || value.front() == '!' ? "" : " " + value);
}

void refuse_combinations(const OptionTexts& texts) {
    for (const Combination& rule : exclusions())
        if (is_given(texts, rule.option, rule.value) && is_given(texts, rule.others, rule.other_value))
            throw usage_error(written(rule.option, rule.value) + " excludes " + written(rule.others, rule.other_value) +
                              ": " + rule.reason);
    for (const Combination& rule : requirements()) {
        const std::vector<std::string> others = split(rule.others, ' ');
        const auto met = [&](const std::string& other) { return is_given(texts, other, rule.other_value); };
        if (!is_given(texts, rule.option, rule.value) || std::any_of(others.begin(), others.end(), met)) continue;
        std::string choices;
        for (const std::string& other : others)
            choices += (choices.empty() ? "" : " or ") + written(other, rule.other_value);
        throw usage_error(written(rule.option, rule.value) + " requires " + choices + ": " + rule.reason);
    }
}

bool accepts(Applies rule, bool listed, bool is_default) {
    return rule == Applies::any || listed || (rule == Applies::unless_default && is_default);
}

// The transports that list the option; none for an option that applies to every transport.
std::vector<TransportInfo> transports_with(const std::string& option) {
    std::vector<TransportInfo> accepting;
    for (const TransportInfo& transport : transports())
        if (transport.accepts(option)) accepting.push_back(transport);
    return accepting;
}

bool accepts_option(const TransportInfo& transport, const std::string& option) {
    return transport.accepts(option) || transports_with(option).empty();
}

std::string reason_of_absence(const std::string& option, const std::string& transport) {
    for (const Absence& absence : absences())
        if (option == absence.option && transport == absence.transport) return std::string(absence.reason) + ", or ";
    return "";
}

void refuse_options_that_do_not_apply(const KernelInfo& kernel, const PatternInfo& pattern,
                                      const TransportInfo& transport, const OptionTexts& texts) {
    for (const OptionInfo& option : row_options()) {
        const auto given = texts.find(option.name);
        if (given == texts.end()) continue;
        const bool is_default = given->second == option.default_text;
        const std::string name = std::string("--") + option.name;
        if (!accepts(option.kernels, kernel.accepts(option.name), is_default))
            throw usage_error(name + " does not apply to " + kernel.name + ": " + option.kernel_reason);
        if (!accepts_option(transport, option.name))
            throw usage_error(name + " does not apply to transport " + transport.name + ": " +
                              reason_of_absence(option.name, transport.name) + "use --transport " +
                              names_of(transports_with(option.name)));
        if (!accepts(option.patterns, pattern.accepts(option.name), is_default))
            throw usage_error(name + " does not apply to pattern " + pattern.name + ": " + option.pattern_reason);
    }
}

void choose_stop_rule(RowOptions& row, const OptionTexts& given) {
    if (given.count("budget") > 0) return;
    if (row.iterations) {
        row.stop.budget_s = row_limits::longest_counted_round_s;
    } else if (!row.stop.samples && !row.stop.precision) {
        row.stop.budget_s = row_limits::default_budget_s;
        row.stop.precision = row_limits::default_precision;
    }
}

// The kernel's default where the transport has it, otherwise the transport's.
std::string default_of_window(const char* offered, const std::string& of_kernel) {
    return of_kernel.empty() || *offered == '\0' || has_word(offered, of_kernel) ? of_kernel
                                                                                 : split(offered, ' ').front();
}

void choose_defaults_of_kernel(RowOptions& row, const KernelInfo& kernel) {
    if (row.memory.empty()) row.memory = transport_named(row.transport).default_memory();
    if (row.pattern.empty()) row.pattern = kernel.default_pattern();
    const TransportInfo& transport = transport_named(row.transport);
    if (row.win.empty()) row.win = default_of_window(transport.wins, kernel.win);
    if (row.sync.empty()) row.sync = default_of_window(transport.syncs, kernel.sync);
    row.sizes_given = !row.sizes.empty();
    if (!row.sizes_given) row.sizes = parse_sizes(kernel.default_sizes);
}

[[noreturn]] void refuse_pattern(const KernelInfo& kernel, const std::string& pattern) {
    std::vector<PatternInfo> choices;
    for (const PatternInfo& other : patterns())
        if (kernel.runs_on(other.shape)) choices.push_back(other);
    throw usage_error(std::string(kernel.name) + " cannot run on pattern " + pattern + ": choose " + names_of(choices));
}

void refuse_sizes(const RowOptions& row, const KernelInfo& kernel) {
    for (const std::size_t size : row.sizes)
        if (!kernel.takes(size))
            throw usage_error("--sizes " + std::to_string(size) + " does not apply to " + row.kernel + ": " +
                              kernel.sizes_hint());
}

void refuse_of_window(const std::string& option, const std::string& value, const char* offered,
                      const std::string& transport) {
    if (!has_word(offered, value))
        throw usage_error("--" + option + " " + value + " does not apply to transport " + transport +
                          ": choose one of " + offered);
}

// Throws where the transport or the kernel has no messages in that memory.
void refuse_memory(const RowOptions& row, const KernelInfo& kernel, const std::string& option,
                   const std::string& memory) {
    const TransportInfo& transport = transport_named(row.transport);
    if (transport.is_of_gpus() && !has_word(transport.memories, memory)) {
        std::string choices;
        for (const std::string& offered : split(transport.memories, ' '))
            choices += (choices.empty() ? "" : " or ") + option + " " + offered;
        throw usage_error(option + " " + memory + " does not apply to transport " + transport.name +
                          ": it moves memory of GPUs only, use " + choices);
    }
    const Capabilities of_gpu_memory = capability::persistent | capability::collectives | capability::mpi_collectives |
                                       (transport.is_of_gpus() ? transport.offers : capability::nothing);
    if (memory_named(memory).gpu && (kernel.required & ~of_gpu_memory) != 0)
        throw usage_error(row.kernel + " does not apply to " + option + " " + memory +
                          ": kernels with one-sided operations or threads have host memory");
}

void refuse_memories(const RowOptions& row, const KernelInfo& kernel) {
    refuse_memory(row, kernel, "--memory", row.memory);
    if (row.peer_memory.empty()) return;
    refuse_memory(row, kernel, "--peer-memory", row.peer_memory);
    const auto first = memory_named(row.memory).gpu, second = memory_named(row.peer_memory).gpu;
    if (first && second && first != second)
        throw usage_error("--memory " + row.memory + " and --peer-memory " + row.peer_memory +
                          " are of two kinds of GPUs: choose host for one of them");
}

void refuse_transport(const RowOptions& row, const KernelInfo& kernel) {
    const TransportInfo& transport = transport_named(row.transport);
    if (const Capabilities missing = kernel.required & ~transport.offers; missing != 0)
        throw usage_error(row.kernel + " requires a transport with " + capability_names(missing) + ", which " +
                          row.transport + " does not offer: choose another --transport");
    if (kernel.one_sided()) refuse_of_window("win", row.win, transport.wins, row.transport);
    if (kernel.one_sided()) refuse_of_window("sync", row.sync, transport.syncs, row.transport);
    if (row.barrier_each && (transport.offers & capability::collectives) == 0)
        throw usage_error("--barrier sample requires a transport with collectives, which " + row.transport +
                          " does not offer: choose another --transport");
    refuse_memories(row, kernel);
    if (row.validate && transport.moves_nothing)
        throw usage_error("--validate does not apply to transport " + row.transport + ": it moves nothing");
}

void refuse_one_sided_sync(const RowOptions& row, const KernelInfo& kernel) {
    if (!kernel.accepts("sync") || !kernel.bidirectional || sync_named(row.sync).both_ends) return;
    const char* const offered = transport_named(row.transport).syncs;
    std::vector<SyncInfo> choices;
    for (const SyncInfo& sync : syncs())
        if (sync.both_ends && has_word(offered, sync.name)) choices.push_back(sync);
    if (choices.empty())
        throw usage_error(row.kernel + " requires a transport with a --sync of both ends, which " + row.transport +
                          " does not offer: choose another --transport");
    throw usage_error("--sync " + row.sync + " does not apply to " + row.kernel + ": both ends must take part, use " +
                      names_of(choices));
}

}  // namespace

const std::vector<OptionInfo>& row_options() {
    static constexpr auto listed = Applies::listed;
    static constexpr auto unless_default = Applies::unless_default;
    static const std::vector<OptionInfo> table = {
#define OPTION(text_, kind_, field_, ...)                                                                  \
    ROW_OF_TABLE(                                                                                          \
        OptionInfo, name = text_, argument = kind::kind_::argument,                                        \
        read_field =                                                                                       \
            [](const OptionInfo& option, RowOptions& row, const std::string& text) {                       \
                assign(row.field_, kind::kind_::read(option.name, option.values, text));                   \
            },                                                                                             \
        write_field = [](const OptionInfo& option,                                                         \
                         const RowOptions& row) { return kind::kind_::write(row.field_, option.values); }, \
        __VA_ARGS__),
#include "registry/options.inc"
    };
    return table;
}

RowOptions::RowOptions() {
    for (const OptionInfo& option : row_options())
        if (*option.default_text != '\0') option.read(*this, option.default_text);
}

OptionTexts overridden(const OptionTexts& benchmark, const OptionTexts& given) {
    OptionTexts texts = given;
    for (const auto& [option, text] : benchmark) {
        const bool replaced =
            std::any_of(replacements().begin(), replacements().end(), [&, name = option](const Replacement& rule) {
                return name == rule.replaced && given.count(rule.given) > 0 && is_given(benchmark, name, rule.value);
            });
        if (!replaced) texts.emplace(option, text);
    }
    return texts;
}

RowOptions make_row(const std::string& kernel_name, const OptionTexts& given) {
    const KernelInfo& kernel = kernel_named(kernel_name);
    RowOptions row;
    row.kernel = kernel.name;
    for (const OptionInfo& option : row_options())
        if (const auto text = given.find(option.name); text != given.end()) option.read(row, text->second);
    choose_defaults_of_kernel(row, kernel);
    choose_stop_rule(row, given);
    const PatternInfo& pattern = pattern_named(row.pattern);
    if (!kernel.runs_on(pattern.shape)) refuse_pattern(kernel, row.pattern);
    refuse_options_that_do_not_apply(kernel, pattern, transport_named(row.transport), given);
    refuse_combinations(given);
    refuse_sizes(row, kernel);
    refuse_transport(row, kernel);
    refuse_one_sided_sync(row, kernel);
    return row;
}

bool RowOptions::applies(const std::string& option) const {
    const OptionInfo& info = row_named(row_options(), option, "option");
    return accepts_option(transport_named(transport), option) &&
           (info.kernels == Applies::any || kernel_info().accepts(option)) &&
           (info.patterns == Applies::any || pattern_info().accepts(option));
}

const std::string& RowOptions::memory_of(int rank, int ranks) const {
    const int half = pattern == "pair" ? 1 : ranks / 2;
    return peer_memory.empty() || rank < half ? memory : peer_memory;
}

std::optional<GpuApi> RowOptions::gpu() const {
    const auto own = memory_named(memory).gpu;
    return own || peer_memory.empty() ? own : memory_named(peer_memory).gpu;
}

int RowOptions::window_for(std::size_t bytes, int fan) const {
    if (!kernel_info().windowed()) return 1;
    using namespace row_limits;
    if (window) return *window;
    const std::size_t in_flight =
        std::min(window_bytes_to_one, window_bytes_to_all / static_cast<std::size_t>(std::max(fan, 1)));
    return static_cast<int>(std::clamp<std::size_t>(in_flight / std::max<std::size_t>(bytes, 1), 1, default_window));
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
    std::string text = kernel;
    for (const OptionInfo& option : row_options()) {
        if (!applies(option.name)) continue;
        if (barrier_each && option.name == std::string("budget")) continue;  // no rank may stop before the others
        const std::optional<std::string> value = option.write(*this);
        if (!value) continue;
        text += std::string(" --") + option.name + (option.argument ? " " + *value : "");
    }
    return text;
}

}  // namespace fablint

// One row of a plan: what it requests.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.hpp"
#include "base/values.hpp"
#include "kernels/kernel.hpp"
#include "memories/memory.hpp"
#include "patterns/pattern.hpp"

namespace fablint {

// Options as they are written: name without the dashes, and value ("" for a flag).
using OptionTexts = std::map<std::string, std::string>;

struct RowOptions : KernelOptions {
    RowOptions();  // the defaults of registry/options.inc

    std::string name;
    std::string purpose;  // what it is measured for
    std::string pattern;
    std::int64_t matchings = 0;
    std::string rounds_file;
    std::string rounds;  // the rounds in the option itself
    bool serial = false;
    std::int64_t repeats = 0;
    std::uint64_t seed = 0;
    std::vector<std::size_t> sizes;
    bool sizes_given = false;  // otherwise the kernel's default sizes, as far as memory reaches
    std::optional<int> window;
    BySize<int> warmup;
    std::optional<BySize<std::int64_t>> iterations;
    StopRule stop;
    std::optional<std::int64_t> batch;
    bool single_direction = false;  // pairs: from the lower rank to the higher one only
    bool single_buffer = false;     // one buffer for all messages of a window
    bool barrier_each = false;      // a barrier of all ranks before every sample, as in osu_mbw_mr and osu_multi_lat
    bool loop_mean = false;         // mean of the whole loop, clock readings included, as in osu_put_latency
    int servers = 0;
    std::optional<int> victims;  // pairs; a tenth of the ranks if absent
    bool all_to_all = false;     // traffic beside the victims; false: incast
    int retest = 0;              // slowest pairs to measure again
    std::string retest_of;       // in the row that does so: name of the row in which they were slow
    std::string peer_memory;     // of the second half of the ranks; empty: as `memory`
    std::string transport;
    std::string device;  // NIC of the transport
    int streams = 0;     // connections of a pair
    std::string ofi_provider;
    std::optional<std::int64_t> gid_index;  // of verbs, like the following
    std::string service_level;
    std::string mtu;         // empty: that of the port
    bool reconnect = false;  // connections of their own for every two passes over the pattern
    bool histogram = false;
    std::optional<Ranges> only_rounds;

    const KernelInfo& kernel_info() const { return kernel_named(kernel); }
    const PatternInfo& pattern_info() const { return pattern_named(pattern); }
    bool applies(const std::string& option) const;  // to the kernel and the pattern, whatever its value

    // Where the buffers of one of `ranks` ranks are.
    const std::string& memory_of(int rank, int ranks) const;
    std::optional<GpuApi> gpu() const;  // of either memory

    // Messages in flight to each of `fan` peers at a size: 64 unless given, but at most 16 MiB to one peer and 256 MiB
    // to all, so that buffers stay small.
    int window_for(std::size_t bytes, int fan) const;
    int warmup_for(std::size_t bytes) const { return warmup.at(bytes); }
    std::optional<std::int64_t> iterations_for(std::size_t bytes) const;
    bool wants_round(std::int64_t round) const;
    bool wants_nothing() const;
    // The plan line with the defaults written out.
    std::string text() const;
};

// Whether an option applies to a kernel or a pattern; registry/options.inc explains the values.
enum class Applies { any, listed, unless_default };

// A row of registry/options.inc, which documents the fields.
struct OptionInfo {
    const char* name = "";
    bool argument = false;  // false: a flag
    const char* values = "";
    const char* default_text = "";
    Applies kernels = Applies::any;
    Applies patterns = Applies::any;
    const char* kernel_reason = "";
    const char* pattern_reason = "";
    const char* value_name = "";
    const char* description = "";
    void (*read_field)(const OptionInfo& option, RowOptions& row, const std::string& text) = nullptr;
    std::optional<std::string> (*write_field)(const OptionInfo& option, const RowOptions& row) = nullptr;

    void read(RowOptions& row, const std::string& text) const { read_field(*this, row, text); }
    // None where the option is absent.
    std::optional<std::string> write(const RowOptions& row) const { return write_field(*this, row); }
};

const std::vector<OptionInfo>& row_options();

// The user's options with those of a benchmark's row where the user gives none, and where none of the user's options
// replaces them.
OptionTexts overridden(const OptionTexts& benchmark, const OptionTexts& given);

// Reads the options of a row, fills in the defaults that depend on the kernel, and throws a usage error where an option
// does not apply or contradicts another one.
RowOptions make_row(const std::string& kernel, const OptionTexts& given);

}  // namespace fablint

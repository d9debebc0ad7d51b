#include "output/tables.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <sstream>

namespace fablint {

namespace {

constexpr std::int64_t lacking = std::numeric_limits<std::int64_t>::min();  // a counter that the hardware lacks

std::string in_lines(const std::vector<std::string>& texts) {
    std::string lines;
    for (const std::string& text : texts) lines += text + '\n';
    return lines;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

}  // namespace

void Tables::create() const {
    make_folder(folder_);
    replace_file(folder_ / "zarr.json", group_metadata(JsonObject().json()));
}

void Tables::write(const std::string& name, const std::string& dimension, const std::vector<std::string>& texts) const {
    write_array(folder_ / name, dimension, texts);
}

void Tables::write(const std::string& name, const std::string& dimension, const GatheredTexts& texts) const {
    const std::string values = name + "_values";
    write(values, values, texts.values());
    write(name, dimension, texts.codes());
}

std::optional<Error> CounterTable::add_reading(const std::vector<NicCounters>& own) {
    std::optional<Error> failure;
    if (readings_ == 0) agree_on_names(own);
    if (readings_ == 0) {
        std::vector<std::string> nics;
        for (const auto& [nic, counters] : own) nics.push_back(nic);
        const GatheredTexts nics_of_ranks = rank_group_.gather(in_lines(nics));
        if (rank_group_.rank() == 0)
            failure = attempt([&] { write_names(nics_of_ranks.of(rank_group_.first_ranks())); });
    }
    if (host_cells() > 0) write_chunks(cells_of(own), failure);
    ++readings_;
    rank_group_.barrier();  // the chunks are complete before the metadata counts the reading
    if (rank_group_.rank() == 0 && !failure) failure = attempt([&] { write_metadata(); });
    return failure;
}

// A counter that only a later reading has shows no change, and is not stored.
void CounterTable::agree_on_names(const std::vector<NicCounters>& own) {
    std::set<std::string> names;
    for (const auto& [nic, counters] : own)
        for (const auto& [name, value] : counters) names.insert(name);
    const GatheredTexts of_ranks = rank_group_.gather(in_lines({names.begin(), names.end()}));
    for (const std::string& lines : of_ranks.values())
        for (const std::string& name : lines_of(lines)) names.insert(name);
    names_ = lines_of(rank_group_.broadcast(in_lines({names.begin(), names.end()})));
    nics_ = static_cast<std::size_t>(rank_group_.maximum(static_cast<double>(own.size())));
}

// The counters that rank 0 has are in no file yet: an earlier launch may have left some.
void CounterTable::write_names(const GatheredTexts& nics_of_hosts) const {
    std::error_code ignored;
    std::filesystem::remove_all(tables_.folder() / "counters", ignored);
    tables_.create();
    tables_.write("counter", "counter", names_);
    GatheredTexts nics;
    std::vector<std::int32_t> codes(nics_of_hosts.size() * nics_, -1);
    for (std::size_t host = 0; host < nics_of_hosts.size(); ++host) {
        std::size_t at = host * nics_;
        for (const std::string& nic : lines_of(nics_of_hosts[host])) {
            nics.add(nic);
            codes[at++] = nics.codes().back();
        }
    }
    tables_.write("counter_nics_values", "counter_nics_values", nics.values());
    const auto hosts = static_cast<std::int64_t>(nics_of_hosts.size());
    write_array(tables_.folder() / "counter_nics", {{"host", hosts}, {"nic", static_cast<std::int64_t>(nics_)}}, codes);
    make_folder(tables_.folder() / "counters");
}

// (nic, counter) of this host.
std::vector<std::int64_t> CounterTable::cells_of(const std::vector<NicCounters>& own) const {
    std::vector<std::int64_t> cells(host_cells(), lacking);
    for (std::size_t nic = 0; nic < std::min(own.size(), nics_); ++nic)
        for (const auto& [name, value] : own[nic].second) {
            const auto at = std::lower_bound(names_.begin(), names_.end(), name);
            if (at != names_.end() && *at == name)
                cells[nic * names_.size() + static_cast<std::size_t>(at - names_.begin())] = value;
        }
    return cells;
}

// The owner of a block receives the counters of one host after another.
void CounterTable::write_chunks(const std::vector<std::int64_t>& cells, std::optional<Error>& failure) {
    rank_group_.barrier();  // rank 0 has created the folder
    const std::vector<int> first_ranks = rank_group_.first_ranks();
    const int me = rank_group_.rank();
    const std::size_t length = hosts_per_chunk();
    for (std::size_t begin = 0; begin < first_ranks.size(); begin += length) {
        const std::size_t end = std::min(begin + length, first_ranks.size());
        const int owner = shared_ ? first_ranks[begin] : 0;
        const bool is_mine = std::binary_search(first_ranks.begin() + static_cast<std::ptrdiff_t>(begin),
                                                first_ranks.begin() + static_cast<std::ptrdiff_t>(end), me);
        if (me != owner && is_mine) rank_group_.send_control(owner, cells.data(), cells.size() * sizeof cells[0]);
        if (me != owner) continue;
        std::vector<std::int64_t> chunk(length * host_cells(), lacking);
        for (std::size_t host = begin; host < end; ++host) {
            std::int64_t* const of_host = &chunk[(host - begin) * host_cells()];
            if (first_ranks[host] == me)
                std::copy(cells.begin(), cells.end(), of_host);
            else
                rank_group_.receive_control(first_ranks[host], of_host, host_cells() * sizeof *of_host);
        }
        if (!failure) failure = attempt([&] { write_chunk(begin / length, chunk); });
    }
}

void CounterTable::write_chunk(std::size_t block, const std::vector<std::int64_t>& cells) const {
    const std::string key = "c." + std::to_string(readings_) + "." + std::to_string(block) + ".0.0";
    replace_file(tables_.folder() / "counters" / key,
                 {reinterpret_cast<const char*>(cells.data()), cells.size() * sizeof cells[0]});
}

void CounterTable::write_metadata() const {
    const auto hosts = static_cast<std::int64_t>(rank_group_.hosts().size());
    const auto nics = static_cast<std::int64_t>(nics_);
    const auto names = static_cast<std::int64_t>(names_.size());
    write_array_metadata(
        tables_.folder() / "counters", {{"reading", readings_}, {"host", hosts}, {"nic", nics}, {"counter", names}},
        {1, static_cast<std::int64_t>(hosts_per_chunk()), nics, names}, "int64", std::to_string(lacking));
}

}  // namespace fablint

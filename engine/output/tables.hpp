// Facts of ranks and hosts as arrays: the group `tables` of a run or a row.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "host/counters.hpp"
#include "output/zarr.hpp"
#include "ranks/gathered_texts.hpp"
#include "ranks/rank_group.hpp"

namespace fablint {

// Written by rank 0.
class Tables {
  public:
    explicit Tables(std::filesystem::path folder) : folder_(std::move(folder)) {}
    const std::filesystem::path& folder() const { return folder_; }
    void create() const;

    template <typename Number>
    void write(const std::string& name, const std::string& dimension, const std::vector<Number>& values) const {
        write_array(folder_ / name, {{dimension, static_cast<std::int64_t>(values.size())}}, values);
    }
    void write(const std::string& name, const std::string& dimension, const std::vector<std::string>& texts) const;
    // Each different text once, as the array NAME_values, and the index of each rank or host into it.
    void write(const std::string& name, const std::string& dimension, const GatheredTexts& texts) const;

  private:
    std::filesystem::path folder_;
};

// The array `counters` of all hosts: its first reading before the measurement, the second after it. The first rank of a
// block of hosts writes their chunk, or rank 0 if the hosts share no file system.
class CounterTable {
  public:
    CounterTable(RankGroup& rank_group, Tables tables, bool shared)
        : rank_group_(rank_group), tables_(std::move(tables)), shared_(shared) {}

    // Collective. `own`: counters of this host, on its first rank. Returns the failure of this rank.
    std::optional<Error> add_reading(const std::vector<NicCounters>& own);

  private:
    void agree_on_names(const std::vector<NicCounters>& own);
    std::vector<std::int64_t> cells_of(const std::vector<NicCounters>& own) const;
    void write_names(const GatheredTexts& nics_of_hosts) const;
    void write_chunks(const std::vector<std::int64_t>& cells, std::optional<Error>& failure);
    void write_chunk(std::size_t block, const std::vector<std::int64_t>& cells) const;
    void write_metadata() const;
    std::size_t hosts_per_chunk() const { return (rank_group_.hosts().size() + 999) / 1000; }
    std::size_t host_cells() const { return nics_ * names_.size(); }

    RankGroup& rank_group_;
    Tables tables_;
    bool shared_;
    int readings_ = 0;
    std::vector<std::string> names_;  // of all counters, sorted
    std::size_t nics_ = 0;            // most of a host
};

}  // namespace fablint

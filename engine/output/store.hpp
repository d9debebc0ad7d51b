// The run directory, specified by docs/reference/run-format.md.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "output/cell.hpp"
#include "output/tables.hpp"
#include "output/zarr.hpp"
#include "ranks/rank_group.hpp"

namespace fablint {

// The arrays of one row of the plan.
class RowArrays {
  public:
    RowArrays(const std::filesystem::path& folder, const Grid& grid, std::vector<std::int64_t> sizes, bool histogram);
    void write_metadata() const;  // and the coordinates
    void write(const Cell& cell);
    void close();

  private:
    void write_histograms(const Cell& cell, std::int64_t column);

    std::filesystem::path folder_;
    Grid grid_;
    std::vector<std::int64_t> sizes_;
    std::vector<std::pair<float SizeResult::*, std::unique_ptr<ZarrArray>>> times_;
    std::unique_ptr<ZarrArray> count_, started_, round_, partner_, histogram_;
};

// One object per rank. Every chunk has one owner, the only rank that writes it: the first rank of its block of rows, or
// rank 0 if the hosts share no file system. Cells are collected in memory; flush() writes them or sends them to their
// owner.
class Store {
  public:
    // Collective. Creates the directory (with `resume`: opens it, and keeps the metadata of the launch before as
    // launch-N) and tests whether all ranks see it. A directory that contains only rounds files is accepted.
    Store(RankGroup& rank_group, const std::string& directory, bool resume, bool private_files);

    bool shared_files() const { return shared_; }

    // Collective. `attributes` are those of the row's group; on rank 0.
    void begin_row(const std::string& name, const Grid& grid, const std::vector<std::int64_t>& sizes, bool histogram,
                   const Json& attributes);
    void put(const Cell& cell);
    // Collective: writes all cells to disk.
    void flush();
    // Writes the cells that this rank owns. For the watchdog's thread; does not throw.
    void rescue();
    // Collective. The row's final attributes; on rank 0.
    void end_row(const Json& attributes);
    // Collective. Replaces the row's attributes; on rank 0.
    void write_row(const Json& attributes);

    // Arrays of the ranks and hosts of the run, and of the present row.
    Tables run_tables();
    Tables row_tables() const;

    // Rank 0: replaces the root's metadata.
    void write_root(const Json& attributes);

  private:
    void create(bool resume);
    void refuse_other_places() const;
    std::string read_table(const char* name) const;
    void archive_launch() const;
    void remove_checksums(const std::string& name) const;
    bool seen_by_all();
    int owner_of(int row) const;
    void write_cells(const std::vector<char>& bytes);
    std::optional<Error> exchange_cells();

    RankGroup& rank_group_;
    std::filesystem::path directory_;
    bool shared_ = true;
    std::filesystem::path row_folder_;
    Grid grid_;
    std::unique_ptr<RowArrays> arrays_;
    std::mutex mutex_;  // guards pending_ and the arrays against rescue()
    std::vector<char> pending_;
};

}  // namespace fablint

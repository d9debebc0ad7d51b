#include "output/store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/files.hpp"

namespace fablint {

namespace {

namespace fs = std::filesystem;

template <typename T>
std::string bytes_of(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// Does the folder contain nothing but `rounds` and `launches`, which the front end creates before the launch, and
// tables of a launch that ended before it had a root?
bool holds_only_plans(const fs::path& directory) {
    std::error_code reason;
    const fs::directory_iterator entries(directory, reason);
    if (reason) return false;
    const auto count = std::count_if(begin(entries), end(entries), [](const fs::directory_entry&) { return true; });
    const auto planned = fs::is_directory(directory / rounds_folder) + fs::is_directory(directory / launches_folder) +
                         fs::is_directory(directory / tables_folder);
    return count > 0 && count == planned;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------
// RowArrays

RowArrays::RowArrays(const fs::path& folder, const Grid& grid, std::vector<std::int64_t> sizes, bool histogram)
    : folder_(folder), grid_(grid), sizes_(std::move(sizes)) {
    const Dimensions by_size = {{"size", static_cast<std::int64_t>(sizes_.size())}};
    const auto array = [&](const char* name, const char* type, const char* fill, const std::string& bytes,
                           const Dimensions& trailing) {
        return std::make_unique<ZarrArray>(folder_ / name, grid_, type, fill, bytes, trailing);
    };
    const std::string nan32 = bytes_of(std::numeric_limits<float>::quiet_NaN());
    const std::string nan64 = bytes_of(std::numeric_limits<double>::quiet_NaN());
    const std::vector<std::pair<const char*, float SizeResult::*>> statistics = {{"time_min", &SizeResult::min},
                                                                                 {"time_median", &SizeResult::median},
                                                                                 {"time_mean", &SizeResult::mean},
                                                                                 {"time_p99", &SizeResult::p99},
                                                                                 {"time_max", &SizeResult::max}};
    for (const auto& [name, member] : statistics)
        times_.emplace_back(member, array(name, "float32", "\"NaN\"", nan32, by_size));
    count_ = array("count", "uint32", "0", bytes_of(std::uint32_t{0}), by_size);
    started_ = array("started", "float64", "\"NaN\"", nan64, {});
    const std::string none = bytes_of(std::int32_t{-1});
    if (grid_.layout == Layout::matrix) round_ = array("round", "int32", "-1", none, {});
    if (grid_.layout == Layout::list) partner_ = array("dst", "int32", "-1", none, {});
    if (histogram)
        histogram_ =
            array("histogram", "uint32", "0", bytes_of(std::uint32_t{0}), {by_size[0], {"bucket", Histogram::buckets}});
}

void RowArrays::write_metadata() const {
    write_array(folder_ / "size", {{"size", static_cast<std::int64_t>(sizes_.size())}}, sizes_);
    for (const auto& [member, array] : times_) array->write_metadata();
    for (const ZarrArray* array : {count_.get(), started_.get(), round_.get(), partner_.get(), histogram_.get()})
        if (array != nullptr) array->write_metadata();
    if (!histogram_) return;
    std::vector<double> edges;
    for (int bucket = 0; bucket < Histogram::buckets; ++bucket) edges.push_back(Histogram::lower_edge(bucket));
    write_array(folder_ / "bucket", {{"bucket", Histogram::buckets}}, edges);
}

void RowArrays::write(const Cell& cell) {
    const bool matrix = grid_.layout == Layout::matrix;
    const std::int64_t plane = matrix ? cell.repeat : 0;
    const std::int64_t column = matrix ? cell.dst : cell.round;
    // Sizes that are not measured yet have no time and the count 0.
    std::vector<float> values(sizes_.size(), std::numeric_limits<float>::quiet_NaN());
    for (const auto& [member, array] : times_) {
        for (std::size_t i = 0; i < cell.sizes.size(); ++i) values[i] = cell.sizes[i].*member;
        array->write_cell(plane, cell.src, column, values.data());
    }
    started_->write_cell(plane, cell.src, column, &cell.started);
    if (matrix) round_->write_cell(plane, cell.src, column, &cell.round);
    if (!matrix) partner_->write_cell(plane, cell.src, column, &cell.dst);
    if (histogram_) write_histograms(cell, column);
    std::vector<std::uint32_t> counts(sizes_.size(), 0);
    for (std::size_t i = 0; i < cell.sizes.size(); ++i) counts[i] = cell.sizes[i].count;
    count_->write_cell(plane, cell.src, column, counts.data());  // written last: it marks the cell as measured
}

// Only the occupied range is written: the file stays sparse.
void RowArrays::write_histograms(const Cell& cell, std::int64_t column) {
    const std::int64_t plane = grid_.layout == Layout::matrix ? cell.repeat : 0;
    constexpr std::size_t size = sizeof(std::uint32_t);
    for (std::size_t i = 0; i < cell.histograms.size(); ++i) {
        const std::vector<std::uint32_t>& counts = cell.histograms[i];
        std::size_t first = 0;
        std::size_t last = counts.size();
        while (first < last && counts[first] == 0) ++first;
        while (last > first && counts[last - 1] == 0) --last;
        if (first < last)
            histogram_->write_part(plane, cell.src, column, (i * counts.size() + first) * size, &counts[first],
                                   (last - first) * size);
    }
}

void RowArrays::close() {
    for (const auto& [member, array] : times_) array->close();
    for (ZarrArray* array : {count_.get(), started_.get(), round_.get(), partner_.get(), histogram_.get()})
        if (array != nullptr) array->close();
}

// ----------------------------------------------------------------------------------------------------------------
// Store

Store::Store(RankGroup& rank_group, const std::string& directory, bool resume, bool private_files)
    : rank_group_(rank_group) {
    // Ranks may start in different folders: the folder of rank 0 is used.
    directory_ = rank_group_.broadcast(fs::absolute(directory).lexically_normal().string());
    rank_group_.on_rank_0([&] { create(resume); });
    shared_ = !private_files && seen_by_all();
}

void Store::create(bool resume) {
    const bool is_run = access((directory_ / "zarr.json").c_str(), F_OK) == 0;
    if (resume) {
        if (!is_run) throw usage_error(directory_.string() + " is not a run directory: there is nothing to resume");
        refuse_other_places();
        archive_launch();
        return;
    }
    if (holds_only_plans(directory_)) return;
    if (access(directory_.c_str(), F_OK) == 0)
        throw usage_error(directory_.string() + " exists: choose another -o, or continue it with fablint resume");
    if (mkdir(directory_.c_str(), 0777) != 0)
        throw usage_error("cannot create " + directory_.string() + ": " + std::strerror(errno) +
                          ": choose an -o in an existing folder that you may write to");
}

// A run belongs to the hosts of its ranks: their arrays are what this launch would write.
void Store::refuse_other_places() const {
    const std::vector<int>& places = rank_group_.rank_host();
    const bool same = read_table("hosts") == encoded_texts(rank_group_.hosts()) &&
                      read_table("rank_host") ==
                          std::string(reinterpret_cast<const char*>(places.data()), places.size() * sizeof(int));
    if (!same)
        throw usage_error(directory_.string() +
                          " was started with other ranks or on other hosts: resume it on the same hosts, in the "
                          "same order");
}

std::string Store::read_table(const char* name) const {
    const fs::path file = directory_ / tables_folder / name / "c.0";
    return fs::exists(file) ? read_file(file) : "";
}

// A resume replaces the metadata and the tables of the launch before it: they are kept as launch-N.
void Store::archive_launch() const {
    int number = 1;
    while (fs::exists(directory_ / ("launch-" + std::to_string(number)))) ++number;
    const fs::path archive = directory_ / ("launch-" + std::to_string(number));
    make_folder(archive);
    std::error_code reason;
    fs::copy_file(directory_ / "zarr.json", archive / "zarr.json", reason);
    if (!reason) fs::copy(directory_ / tables_folder, archive / tables_folder, fs::copy_options::recursive, reason);
    if (reason) throw incomplete_error("cannot write " + archive.string() + ": " + reason.message());
}

// Before a resume writes files of which the front end kept checksums: those of a row, or of the root's metadata.
void Store::remove_checksums(const std::string& name) const {
    std::error_code reason;
    fs::remove(directory_ / checksums_folder / (name + ".sha256"), reason);
}

// Rank 0 creates a file, and the other ranks look for it.
bool Store::seen_by_all() {
    const fs::path token = directory_ / rank_group_.broadcast(".shared-" + std::to_string(getpid()));
    rank_group_.on_rank_0([&] { replace_file(token, ""); });
    const bool seen = access(token.c_str(), F_OK) == 0;
    const bool by_all = rank_group_.minimum(seen ? 1.0 : 0.0) > 0.0;
    if (rank_group_.rank() == 0) unlink(token.c_str());
    return by_all;
}

int Store::owner_of(int row) const {
    const auto block = static_cast<int>(grid_.rows_per_chunk());
    return shared_ ? row / block * block : 0;
}

void Store::begin_row(const std::string& name, const Grid& grid, const std::vector<std::int64_t>& sizes, bool histogram,
                      const Json& attributes) {
    grid_ = grid;
    row_folder_ = directory_ / name;
    const std::lock_guard<std::mutex> lock(mutex_);
    arrays_ = std::make_unique<RowArrays>(row_folder_, grid, sizes, histogram);
    rank_group_.on_rank_0([&] {
        remove_checksums(name);
        std::error_code reason;
        fs::remove_all(row_folder_ / tables_folder, reason);  // of an earlier launch
        make_folder(row_folder_);
        arrays_->write_metadata();
        replace_file(row_folder_ / "zarr.json", group_metadata(attributes));
    });
}

void Store::put(const Cell& cell) {
    const std::lock_guard<std::mutex> lock(mutex_);
    append(pending_, cell);
}

void Store::write_cells(const std::vector<char>& bytes) {
    for (const Cell& cell : unpack(bytes)) arrays_->write(cell);
    arrays_->close();
}

void Store::flush() { rank_group_.throw_if_any_failed(exchange_cells()); }

// An owner writes its own cells, then receives those of the other ranks of its block one rank after another: it never
// holds the cells of more than one other rank.
std::optional<Error> Store::exchange_cells() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int me = rank_group_.rank();
    std::optional<Error> failure;
    const auto write = [&](const std::vector<char>& bytes) {
        if (!failure) failure = attempt([&] { write_cells(bytes); });
    };
    if (owner_of(me) != me) {
        rank_group_.send_control_text(owner_of(me), {pending_.data(), pending_.size()});
        pending_.clear();
        return std::nullopt;
    }
    write(pending_);
    // After a failure to write the run ends: the cells in memory are dropped.
    pending_.clear();
    const int last =
        shared_ ? std::min<int>(rank_group_.size(), me + static_cast<int>(grid_.rows_per_chunk())) : rank_group_.size();
    for (int member = me + 1; member < last; ++member) {
        const std::string cells = rank_group_.receive_control_text(member);
        write({cells.begin(), cells.end()});
    }
    return failure;
}

void Store::rescue() {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || !arrays_ || pending_.empty() || owner_of(rank_group_.rank()) != rank_group_.rank()) return;
    // A failure is not reported: the run ends because of another error.
    if (!attempt([&] { write_cells(pending_); })) pending_.clear();
}

void Store::end_row(const Json& attributes) {
    flush();
    write_row(attributes);
}

void Store::write_row(const Json& attributes) {
    rank_group_.on_rank_0([&] { replace_file(row_folder_ / "zarr.json", group_metadata(attributes)); });
}

Tables Store::run_tables() {
    if (rank_group_.rank() == 0) remove_checksums("zarr.json");
    return Tables(directory_ / tables_folder);
}

Tables Store::row_tables() const { return Tables(row_folder_ / tables_folder); }

void Store::write_root(const Json& attributes) {
    remove_checksums("zarr.json");
    replace_file(directory_ / "zarr.json", group_metadata(attributes));
}

}  // namespace fablint

#include "measure/session.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/mpi_c.hpp"  // SMPI_H
#include "host/facts.hpp"
#include "measure/instrument.hpp"
#include "measure/runner.hpp"
#include "measure/schedule.hpp"
#include "output/root.hpp"
#include "output/store.hpp"
#include "ranks/mpi_control.hpp"
#include "ranks/watchdog.hpp"
#include "sockets/connect_limit.hpp"

namespace fablint {

namespace {

// Rank 0 reads the plan and broadcasts the text: other hosts need not see the file.
std::string read_for_all(RankGroup& rank_group, const std::string& name) {
    std::string text;
    rank_group.on_rank_0(
        [&] { text = name == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_file(name); });
    return rank_group.broadcast(text);
}

// Of a request whose rows are not known yet.
constexpr double default_longest_round_s = 60.0;

double epoch_seconds() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<RowOptions> collect_rows(RankGroup& rank_group, const Options& options) {
    std::vector<RowOptions> rows = options.rows;
    if (!options.plan.empty()) {
        const std::string name = options.plan == "-" ? "plan" : options.plan;
        rows = parse_plan(read_for_all(rank_group, options.plan), name);
    }
    name_rows(rows);
    return rows;
}

// The thread level is set when MPI starts, before a plan file is read.
void check_threads(const std::vector<RowOptions>& rows) {
    const std::optional<MpiLibrary> mpi = mpi_library();
    for (const RowOptions& row : rows)
        if (row.kernel_info().needs(capability::thread_lanes) && mpi && mpi->thread_level != "multiple")
            throw usage_error(row.kernel +
                              " needs MPI_THREAD_MULTIPLE, which this MPI library does not provide (with a plan "
                              "file, start the engine with --threads)");
}

// The library of the GPUs that the rows use, if any: a host has GPUs of one vendor.
std::optional<GpuApi> gpu_of_rows(const std::vector<RowOptions>& rows) {
    for (const RowOptions& row : rows)
        if (const auto gpu = row.gpu()) return gpu;
    return std::nullopt;
}

double longest_round(const std::vector<RowOptions>& rows) {
    double longest = 0.0;
    for (const RowOptions& row : rows) longest = std::max(longest, row.stop.budget_s);
    return longest;
}

// Path of a rounds file: the copy inside the run directory, if any, so that a run can be moved and resumed.
std::string rounds_file_of(const RowOptions& row, const std::string& run) {
    const std::filesystem::path own = std::filesystem::path(run) / row.rounds_file;
    return !run.empty() && std::filesystem::exists(own) ? own.string() : row.rounds_file;
}

// Transport and memories.
using MediumNames = std::array<std::string, 3>;
MediumNames medium_of(const RowOptions& row) { return {row.transport, row.memory, row.peer_memory}; }

// What this rank does in the rounds of the rounds file of every row; empty without one. Constructs the runners, so that
// all rows are checked against the ranks before anything is measured, and tries the media of all rows that the run may
// not go on without. That of the first row is tried when the row begins.
std::vector<RoundRoles> read_rounds(const RunContext& context, const std::vector<RowOptions>& rows,
                                    const Options& options) {
    std::vector<RoundRoles> rounds;
    std::set<MediumNames> media;
    for (const RowOptions& row : rows) {
        rounds.emplace_back();
        if (options.resume && row.wants_nothing()) continue;
        if (!row.rounds_file.empty())
            rounds.back() = read_rounds_file(context.rank_group, rounds_file_of(row, options.output));
        Runner runner(context, row, rounds.back());  // throws if the ranks do not suffice
        const bool is_another = media.insert(medium_of(row)).second && media.size() > 1;
        if (is_another && !options.skip_refused) runner.try_medium();
    }
    return rounds;
}

// The transports and memories that do not start here: rows over them are not measured.
class Refusals {
  public:
    explicit Refusals(bool skips) : skips_(skips) {}
    bool has(const RowOptions& row) const { return media_.count(medium_of(row)) > 0; }
    // Throws the error where the run may not go on without the row.
    void add(const RowOptions& row, const Error& refusal) {
        ends_run_ = !skips_;
        if (ends_run_) throw Error(refusal);
        media_.insert(medium_of(row));
        status_ = refusal.status();
    }
    bool ends_run() const { return ends_run_; }
    // Of a run whose other rows ended with `status`.
    Exit status(Exit status, const std::vector<RowOptions>& rows) const {
        if (media_.empty() || status != Exit::done) return status;
        const bool is_all = std::all_of(rows.begin(), rows.end(), [this](const RowOptions& row) { return has(row); });
        return is_all ? status_ : Exit::incomplete;
    }

  private:
    bool skips_;
    bool ends_run_ = false;
    std::set<MediumNames> media_;
    Exit status_ = Exit::done;
};

Exit worse(Exit status, const RowOutcome& outcome) {
    if (outcome.interrupted) return Exit::incomplete;
    return outcome.damaged && status == Exit::done ? Exit::fault : status;
}

struct RunEnd {
    Exit status;
    bool written;  // all files of the rows that were measured
};

// With `resume`, a row without requested rounds is complete and stays as it is.
RunEnd run_rows(const RunContext& context, Root& root, const std::vector<RowOptions>& rows,
                const std::vector<RoundRoles>& rounds, const Options& options) {
    Exit status = Exit::done;
    Refusals refusals(options.skip_refused);
    // The error is the same on all ranks, and one rank has printed it.
    const std::optional<Error> failure = attempt([&] {
        for (std::size_t i = 0; i < rows.size() && status != Exit::incomplete; ++i) {
            if ((options.resume && rows[i].wants_nothing()) || refusals.has(rows[i])) continue;
            const RowOutcome outcome = Runner(context, rows[i], rounds[i]).run();
            if (outcome.refusal) {
                refusals.add(rows[i], *outcome.refusal);
                continue;
            }
            if (context.rank_group.rank() == 0) context.report.table(outcome.table);
            status = worse(status, outcome);
            if (outcome.slowest.empty()) continue;
            const RowOptions retest = retest_row(rows[i], outcome.slowest);
            root.add_row(retest);
            if (context.store != nullptr) root.write(*context.store, "measuring");
            const RowOutcome again = Runner(context, retest, {}).run();
            if (again.refusal) refusals.add(retest, *again.refusal);
            status = worse(status, again);
        }
    });
    // What is not refused ended with an error, as where a file of the row cannot be written.
    if (failure) return {failure->status(), refusals.ends_run()};
    return {refusals.status(status, rows), true};
}

std::unique_ptr<Watchdog> watch(RankGroup& rank_group, double limit_s, double round_s, Store* store) {
#ifdef SMPI_H  // simulated time stands still while a rank waits
    limit_s = 0.0;
#endif
    if (limit_s <= 0.0) return nullptr;
    rank_group.set_probe_after(limit_s / 3.0);
    return std::make_unique<Watchdog>(rank_group, limit_s, round_s, [store] {
        if (store != nullptr) store->rescue();
    });
}

}  // namespace

Exit measure(RankGroup& rank_group, const Options& options, const std::vector<std::string>& command, RunReport& report,
             std::optional<Instrument>& instrument) {
    // The front end limits the time of a start. A later request begins among ranks that may have failed since.
    std::unique_ptr<Watchdog> watchdog;
    if (options.serve) watchdog = watch(rank_group, options.watchdog_s, default_longest_round_s, nullptr);
    const std::vector<RowOptions> rows = collect_rows(rank_group, options);
    check_threads(rows);
    const bool has_sysfs = std::filesystem::is_directory(options.sysfs);
    rank_group.throw_if_any_failed(
        has_sysfs ? std::nullopt : std::make_optional(usage_error("--sysfs " + options.sysfs + " is not a directory")));
    std::optional<Binding> binding;
    if (options.ranks_per_nic > 0) binding = bind_to_nics(rank_group, options.sysfs, options.ranks_per_nic);
    Facts facts(rank_group, options.sysfs, binding, gpu_of_rows(rows));
    rank_group.set_yielding(facts.oversubscribed());
    if (!instrument) instrument = examine_instrument(rank_group, wall_clock());
    const double now_s = epoch_seconds();
    const double epoch_s = options.epoch.value_or(now_s);
    // The same instant on all ranks: that of rank 0, whose clock may be behind that of the host that began the run.
    const double elapsed_s = std::max(0.0, now_s - epoch_s);
    const double origin = rank_group.maximum(rank_group.rank() == 0 ? rank_group.now() - elapsed_s : -1e300);
    Retransmissions retransmissions(rank_group);
    RunContext context{
        rank_group,      wall_clock(),       *instrument, nullptr,        options.counters ? &facts : nullptr,
        retransmissions, facts.interfaces(), origin,      !options.quiet, options.by_size,
        report,          options.sysfs};
    context.connect_limit_s = connect_limit_beside(options.watchdog_s);
    const std::vector<RoundRoles> rounds = read_rounds(context, rows, options);
    Root root(rank_group, facts, *instrument, command, rows, epoch_s);
    std::unique_ptr<Store> store;
    std::optional<CounterTable> counters;
    if (!options.output.empty()) {
        store = std::make_unique<Store>(rank_group, options.output, options.resume, options.private_files);
        root.write_tables(*store);
        counters.emplace(rank_group, store->run_tables(), store->shared_files());
        rank_group.throw_if_any_failed(counters->add_reading(facts.counters()));
        root.write(*store, "measuring");
        context.store = store.get();
    }
    report.start();
    watchdog.reset();
    watchdog = watch(rank_group, options.watchdog_s, longest_round(rows), store.get());
    RunEnd end = run_rows(context, root, rows, rounds, options);
    watchdog.reset();
    std::optional<Error> failure;
    if (counters) failure = counters->add_reading(facts.counters());
    if (store && (end.status == Exit::done || end.status == Exit::fault)) {
        rank_group.throw_if_any_failed(failure);
        root.write(*store, "complete");
    } else if (store) {
        end.written = root.write_at_the_end(*store, "interrupted") && end.written;
    }
    if (store || options.serve) report.end(end.status, end.written);
    return end.status;
}

}  // namespace fablint

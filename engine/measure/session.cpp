#include "measure/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>

#include "base/files.hpp"
#include "host/facts.hpp"
#include "measure/instrument.hpp"
#include "measure/runner.hpp"
#include "output/root.hpp"
#include "output/store.hpp"
#include "ranks/watchdog.hpp"

namespace fablint {

namespace {

// Rank 0 reads, all get the text: other hosts need not see the file.
std::string read_for_all(Team& team, const std::string& name) {
    std::string text;
    team.on_rank_0(
        [&] { text = name == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_file(name); });
    return team.broadcast(text);
}

double epoch_seconds() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<RowOptions> collect_rows(Team& team, const Options& options) {
    std::vector<RowOptions> rows = options.rows;
    if (!options.plan.empty()) {
        const std::string name = options.plan == "-" ? "plan" : options.plan;
        rows = parse_plan(read_for_all(team, options.plan), name);
    }
    name_rows(rows);
    return rows;
}

// Threads are decided when MPI starts, before a plan file is read.
void check_threads(const std::vector<RowOptions>& rows) {
    int provided = 0;
    MPI_Query_thread(&provided);
    for (const RowOptions& row : rows)
        if (row.kernel_info().needs(capability::thread_lanes) && provided < MPI_THREAD_MULTIPLE)
            throw usage_error(row.kernel +
                              " needs MPI_THREAD_MULTIPLE, which this MPI library does not provide (with a plan "
                              "file, start the engine with --threads)");
}

double longest_round(const std::vector<RowOptions>& rows) {
    double longest = 0.0;
    for (const RowOptions& row : rows) longest = std::max(longest, row.stop.budget_s);
    return longest;
}

// Where a rounds file is: a run has its own, so that it can be moved and resumed from anywhere.
std::string rounds_file_of(const RowOptions& row, const std::string& run) {
    const std::filesystem::path own = std::filesystem::path(run) / row.rounds_file;
    return !run.empty() && std::filesystem::exists(own) ? own.string() : row.rounds_file;
}

// The content of every row's rounds file, empty where it has none. All rows are checked against the ranks before
// anything is measured, by making their runners.
std::vector<std::string> read_rounds(const RunContext& context, const std::vector<RowOptions>& rows,
                                     const Options& options) {
    std::vector<std::string> texts;
    for (const RowOptions& row : rows) {
        texts.emplace_back();
        if (options.resume && row.wants_nothing()) continue;
        if (!row.rounds_file.empty()) texts.back() = read_for_all(context.team, rounds_file_of(row, options.output));
        const Runner refuses_what_is_wrong(context, row, texts.back());
    }
    return texts;
}

Exit worse(Exit status, const RowOutcome& outcome) {
    if (outcome.interrupted) return Exit::incomplete;
    return outcome.damaged && status == Exit::done ? Exit::fault : status;
}

// The slowest pairs of a row once more, one after the other: slow in company alone, or by themselves?
RowOptions retest_row(const RowOptions& row, const std::string& rounds) {
    RowOptions again = row;
    again.name = row.name + "-retest";
    again.retest_of = row.name;
    again.pattern = "rounds";
    again.rounds_file.clear();
    again.rounds = rounds;
    again.serial = true;
    again.repeats = 1;
    again.retest = 0;
    again.only_rounds.reset();
    return again;
}

// With `resume` a row of which nothing is wanted is complete, and left as it is.
Exit run_rows(const RunContext& context, Root& root, const std::vector<RowOptions>& rows,
              const std::vector<std::string>& rounds_texts, bool resume) {
    Exit status = Exit::done;
    const std::optional<Error> failure = attempt([&] {
        for (std::size_t i = 0; i < rows.size() && status != Exit::incomplete; ++i) {
            if (resume && rows[i].wants_nothing()) continue;
            const RowOutcome outcome = Runner(context, rows[i], rounds_texts[i]).run();
            if (context.team.rank() == 0) std::fputs(outcome.table.c_str(), stdout);
            status = worse(status, outcome);
            if (outcome.slowest.empty()) continue;
            const RowOptions again = retest_row(rows[i], outcome.slowest);
            root.add_row(again);
            if (context.store != nullptr) root.write(*context.store, "measuring");
            status = worse(status, Runner(context, again, "").run());
        }
    });
    return failure ? failure->status() : status;  // all ranks agreed on the failure, and one reported it
}

std::unique_ptr<Watchdog> watch(Team& team, double limit_s, double round_s, Store* store) {
#ifdef SMPI_H  // simulated time stands still while a rank waits
    limit_s = 0.0;
#endif
    if (limit_s <= 0.0) return nullptr;
    team.set_ask_after(limit_s / 3.0);
    return std::make_unique<Watchdog>(team, limit_s, round_s, [store] {
        if (store != nullptr) store->rescue();
    });
}

}  // namespace

Exit measure(Team& team, const Options& options, const std::vector<std::string>& command) {
    const std::vector<RowOptions> rows = collect_rows(team, options);
    check_threads(rows);
    if (!std::filesystem::is_directory(options.sysfs))
        throw usage_error("--sysfs " + options.sysfs + " is no directory");
    std::optional<Binding> binding;
    if (options.ranks_per_nic > 0) binding = bind_to_nics(team, options.sysfs, options.ranks_per_nic);
    Facts facts(team, options.sysfs, binding);
    team.set_patient(facts.oversubscribed());
    const Instrument instrument = examine_instrument(team, wall_clock());
    const double now_s = epoch_seconds();
    const double epoch_s = options.epoch.value_or(now_s);
    // The same instant for all ranks: rank 0's.
    const double origin = team.maximum(team.rank() == 0 ? team.now() - (now_s - epoch_s) : -1e300);
    Retransmissions retransmissions(team);
    RunContext context{team,   wall_clock(),  instrument, nullptr, options.counters ? &facts : nullptr, retransmissions,
                       origin, !options.quiet};
    const std::vector<std::string> rounds_texts = read_rounds(context, rows, options);
    Root root(team, facts, instrument, command, rows, epoch_s);
    std::unique_ptr<Store> store;
    if (!options.output.empty()) {
        store = std::make_unique<Store>(team, options.output, options.resume, options.private_files);
        root.write(*store, "measuring");
        context.store = store.get();
    }
    // The front end limits the time until this line: before it no watchdog names a rank that another one waits for.
    if (!options.quiet && team.rank() == 0) std::fprintf(stderr, "fablint-engine: started: %d ranks\n", team.size());
    auto watchdog = watch(team, options.watchdog_s, longest_round(rows), store.get());
    const Exit status = run_rows(context, root, rows, rounds_texts, options.resume);
    watchdog.reset();
    if (!store) return status;
    facts.read_counters_after();
    if (status == Exit::done || status == Exit::fault) {
        root.write(*store, "complete");
    } else {
        root.write_at_the_end(*store, "interrupted");
    }
    // All is written: the front end does not wait long for ranks that stay in MPI_Finalize.
    std::fflush(stdout);
    if (!options.quiet && team.rank() == 0)
        std::fprintf(stderr, "fablint-engine: ended: status %d\n", static_cast<int>(status));
    return status;
}

}  // namespace fablint

#include "runner.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "osu.hpp"
#include "permutation.hpp"

namespace fablint {

namespace {

volatile std::sig_atomic_t stop_requested = 0;

// The contract is 5 s; the rounds between two looks at the clock come on top.
constexpr double flush_interval_s = 2.0;
constexpr double progress_interval_s = 1.0;

bool prints_table(const RowOptions& row) { return row.pattern == "pair" || row.pattern == "pairs"; }

}  // namespace

void request_stop() { stop_requested = 1; }

Runner::Runner(const RunContext& context, const RowOptions& row, const std::string& rounds_text)
    : context_(context), team_(context.team), row_(row) {
    PatternRequest request;
    request.kind = row.pattern;
    request.ranks = team_.size();
    request.matchings = row.matchings;
    request.rounds_text = rounds_text;
    request.rounds_name = row.rounds_file;
    for (std::int64_t repeat = 0; repeat < row.repeats; ++repeat) {
        request.seed = mix(row.seed, static_cast<std::uint64_t>(repeat));
        patterns_.push_back(make_pattern(request));
    }
    rounds_per_repeat_ = patterns_.front()->rounds();
}

Seat Runner::seat(std::int64_t round) const {
    const auto repeat = static_cast<std::size_t>(round / rounds_per_repeat_);
    return patterns_[repeat]->seat(round % rounds_per_repeat_, team_.rank());
}

Grid Runner::grid() const {
    Grid grid;
    grid.layout = patterns_.front()->layout();
    grid.rows = team_.size();
    const bool matrix = grid.layout == Layout::matrix;
    grid.planes = matrix ? row_.repeats : 1;
    grid.columns = matrix ? team_.size() : rounds_per_repeat_ * row_.repeats;
    return grid;
}

std::vector<std::int64_t> Runner::plan_rounds() const {
    std::vector<std::int64_t> rounds;
    for (std::int64_t round = 0; round < rounds_per_repeat_ * row_.repeats; ++round)
        if (row_.wants_round(round)) rounds.push_back(round);
    return rounds;
}

// One number where all rounds are alike, else a list.
Json Runner::cells_per_round() const {
    std::vector<int> cells;
    for (std::int64_t round = 0; round < rounds_per_repeat_ * row_.repeats; ++round)
        cells.push_back(2 * patterns_.front()->slots(round % rounds_per_repeat_));
    const bool alike = std::all_of(cells.begin(), cells.end(), [&](int count) { return count == cells.front(); });
    return alike ? Json(cells.front()) : Json::list(cells);
}

Json Runner::attributes(const char* state, const std::string& corrupt) const {
    std::vector<int> windows;
    for (const std::size_t size : row_.sizes) windows.push_back(row_.window_for(size));
    JsonObject stop;
    stop.add("samples", row_.stop.samples ? Json(*row_.stop.samples) : Json::null());
    stop.add("budget_s", row_.stop.budget_s);
    stop.add("precision", row_.stop.precision ? Json(*row_.stop.precision) : Json::null());
    JsonObject object;
    object.add("kernel", row_.kernel)
        .add("pattern", row_.pattern)
        .add("transport", row_.transport)
        .add("memory", row_.memory)
        .add("order", row_.serial ? "serial" : "parallel")
        .add("options", row_.text())
        .add("layout", patterns_.front()->layout() == Layout::matrix ? "matrix" : "list")
        .add("state", state)
        .add("rounds", rounds_per_repeat_ * row_.repeats)
        .add("cells_per_round", cells_per_round())
        .add("repeats", row_.repeats)
        .add("seed", row_.seed)
        .add("windows", Json::list(windows))
        .add("warmup", row_.warmup)
        .add("stop", stop.json())
        .add("validate", row_.validate)
        .add("measuring_s", measuring_s_)
        .add("wall_s", began_ == 0.0 ? 0.0 : team_.now() - began_);
    if (!corrupt.empty()) object.add("corrupt", Json::parsed("[" + corrupt + "]"));
    return object.json();
}

RowOutcome Runner::run() {
    team_.agree(attempt([&] {
        transport_ = transport_named(row_.transport).make();
        memory_ = memory_named(row_.memory).make();
        meeting_ = std::make_unique<Meeting>(team_, context_.clock, context_.instrument.clock.overhead_s, row_,
                                             *transport_, *memory_);
    }));
    const std::vector<std::int64_t> sizes(row_.sizes.begin(), row_.sizes.end());
    if (context_.store != nullptr)
        context_.store->begin_row(row_.name, grid(), sizes, row_.histogram, attributes("measuring", ""));
    measure_rounds();
    RowOutcome outcome;
    outcome.interrupted = interrupted_;
    const std::string corrupt = collect_damages();
    outcome.damaged = team_.maximum(meeting_->damages().empty() ? 0.0 : 1.0) > 0.0;  // every rank learns that
    if (context_.store != nullptr)
        context_.store->end_row(attributes(interrupted_ ? "interrupted" : "complete", corrupt));
    if (prints_table(row_) && !interrupted_) outcome.table = table();
    return outcome;
}

void Runner::measure_rounds() {
    began_ = last_flush_ = last_progress_ = team_.now();
    signal_ = Signal{};
    const std::vector<std::int64_t> rounds = plan_rounds();
    for (std::size_t done = 0; done < rounds.size() && !interrupted_; ++done) {
        const std::int64_t round = rounds[done];
        const Seat mine = seat(round);
        const int turns = row_.serial ? patterns_.front()->slots(round % rounds_per_repeat_) : 1;
        for (int turn = 0; turn < turns && !interrupted_; ++turn) {
            if (!meet_before_round()) break;
            if (mine.partner >= 0 && (!row_.serial || mine.slot == turn)) take_part(round, mine);
        }
        show_progress(done, rounds.size());
    }
    if (!interrupted_) measuring_s_ += team_.rendezvous(signal_).largest;  // the last round is over when all are back
}

// All ranks meet before a round; false when one of them wants to end the run. A stop between the turns of a serial
// round leaves that round to resume.
bool Runner::meet_before_round() {
    if (stop_requested != 0) signal_.flags |= Signal::stop;
    if (team_.now() - last_flush_ > flush_interval_s) signal_.flags |= Signal::flush;
    const Signal all = team_.rendezvous(signal_);
    signal_ = Signal{};
    measuring_s_ += all.largest;
    interrupted_ = (all.flags & Signal::stop) != 0;
    if (interrupted_) return false;
    if ((all.flags & Signal::flush) != 0 && context_.store != nullptr) {
        context_.store->flush();
        team_.rendezvous();  // those who wrote more come later
        last_flush_ = team_.now();
    }
    return true;
}

void Runner::take_part(std::int64_t round, const Seat& seat) {
    const double begin = team_.now();
    // Who leads first alternates, so that no rank is always the one that starts cold.
    const bool first = (team_.rank() < seat.partner) == (round % 2 == 0);
    Cell cell = meeting_->meet(seat.partner, first, round);
    cell.src = team_.rank();
    cell.dst = seat.partner;
    cell.round = static_cast<std::int32_t>(round);
    cell.repeat = static_cast<std::int32_t>(round / rounds_per_repeat_);
    cell.started = begin - context_.epoch;
    signal_.largest = team_.now() - begin;
    if (context_.store != nullptr) context_.store->put(cell);
    if (prints_table(row_) && cell.src < cell.dst) append(table_cells_, cell);
}

void Runner::show_progress(std::size_t done, std::size_t all) {
    const double now = team_.now();
    if (!context_.progress || team_.rank() != 0 || now - last_progress_ < progress_interval_s) return;
    last_progress_ = now;
    const double left = (now - began_) / static_cast<double>(done + 1) * static_cast<double>(all - done - 1);
    std::fprintf(stderr, "fablint-engine: %s: round %zu of %zu, %.1f s left\n", row_.name.c_str(), done + 1, all, left);
}

// The damages of all ranks as JSON objects, on rank 0; the worst of it is said on stderr.
std::string Runner::collect_damages() {
    std::string mine;
    for (const Damage& damage : meeting_->damages())
        mine += (mine.empty() ? "" : ",") + JsonObject()
                                                .add("src", damage.src)
                                                .add("dst", damage.dst)
                                                .add("size", static_cast<std::uint64_t>(damage.size))
                                                .add("message", damage.message)
                                                .add("offset", static_cast<std::uint64_t>(damage.offset))
                                                .json()
                                                .text();
    if (!meeting_->damages().empty()) {
        const Damage& first = meeting_->damages().front();
        std::fprintf(
            stderr,
            "fablint-engine: damaged: rank %d (%s) received a wrong byte at offset %zu of message %lld, %zu bytes "
            "from rank %d (%s), row %s\n",
            first.dst, team_.host_of(first.dst).c_str(), first.offset, static_cast<long long>(first.message),
            first.size, first.src, team_.host_of(first.src).c_str(), row_.name.c_str());
    }
    std::string all;
    for (const std::string& text : team_.gather(mine))
        if (!text.empty()) all += (all.empty() ? "" : ",") + text;
    return all;
}

std::string Runner::table() {
    std::vector<Cell> cells;
    for (const std::string& text : team_.gather(std::string(table_cells_.begin(), table_cells_.end())))
        for (Cell& cell : unpack(std::vector<char>(text.begin(), text.end()))) cells.push_back(std::move(cell));
    if (cells.empty()) return "";
    return osu_table(row_, cells, patterns_.front()->slots(0));
}

}  // namespace fablint

#include "measure/runner.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "measure/row_attributes.hpp"
#include "measure/row_suitability.hpp"
#include "output/osu.hpp"
#include "ranks/watchdog.hpp"

namespace fablint {

namespace {

volatile std::sig_atomic_t stop_requested = 0;

// The documented limit is 5 s, which includes the round between two readings of the clock.
constexpr double flush_interval_s = 2.0;
constexpr double progress_interval_s = 1.0;
// After a size is written the ranks leave the CPUs to the front end, which prints it: it may run on the CPU of a rank.
constexpr double printing_s = 0.03;

}  // namespace

void request_stop() { stop_requested = 1; }

bool is_stop_requested() { return stop_requested != 0; }

Runner::Runner(const RunContext& context, const RowOptions& row, const RoundRoles& file_rounds)
    : context_(context),
      rank_group_(context.rank_group),
      row_(row),
      schedule_(context.rank_group, row_, file_rounds),
      medium_(context_, row_, schedule_),
      slowest_(row.retest) {
    refuse_unsuitable(rank_group_, row_, schedule_);
    if (row_.kernel_info().collective()) drop_sizes_beyond_memory(row_, rank_group_.size());
}

RowState Runner::state(const char* word, const std::string& corrupt) const {
    RowState row_state;
    row_state.state = word;
    row_state.corrupt = corrupt;
    row_state.gpu_path = medium_.gpu_path();
    row_state.measuring_s = measuring_s_;
    row_state.wall_s = began_ == 0.0 ? 0.0 : rank_group_.now() - began_;
    row_state.cpu_wait_s = cpu_waited_s_;
    row_state.tcp = tcp_segments_;
    row_state.devices = devices_;
    return row_state;
}

Json Runner::attributes(const char* word, const std::string& corrupt) const {
    return row_attributes(row_, schedule_, state(word, corrupt));
}

void Runner::begin_row() {
    const std::vector<std::int64_t> sizes(row_.sizes.begin(), row_.sizes.end());
    context_.store->begin_row(row_.name, schedule_.grid(), sizes, row_.histogram, attributes("measuring", ""));
    rank_group_.on_rank_0([&] { write_row_tables(context_.store->row_tables(), schedule_, state("measuring", "")); });
    if (context_.facts == nullptr) return;
    counters_.emplace(rank_group_, context_.store->row_tables(), context_.store->shared_files());
    read_counters();
}

void Runner::read_counters() {
    if (counters_) rank_group_.throw_if_any_failed(counters_->add_reading(context_.facts->counters()));
}

void Runner::end_row(const char* word, const std::string& corrupt) {
    rank_group_.on_rank_0([&] { write_row_tables(context_.store->row_tables(), schedule_, state(word, corrupt)); });
    context_.store->end_row(attributes(word, corrupt));
    context_.report.row(row_.name, word);
}

RowOutcome Runner::run() {
    RowOutcome outcome;
    if ((outcome.refusal = attempt([&] { medium_.connect(); }))) return outcome;
    if (is_by_size()) medium_.measurement().set_stop([] { return stop_requested != 0; });
    if (context_.store != nullptr) begin_row();
    context_.retransmissions.begin();
    cpu_wait_.begin();
    measure_rounds();
    cpu_waited_s_ = cpu_wait_.collect();
    medium_.disconnect();
    tcp_segments_ = context_.retransmissions.collect();
    devices_ = collect_devices(rank_group_, medium_.devices());
    read_counters();
    outcome.interrupted = interrupted_;
    report_damage();
    const std::string corrupt = collect_damages(rank_group_, medium_.damages());
    outcome.damaged = rank_group_.maximum(medium_.damages().empty() ? 0.0 : 1.0) > 0.0;  // the same on all ranks
    if (context_.store != nullptr) end_row(interrupted_ ? "interrupted" : "complete", corrupt);
    if (interrupted_) return outcome;
    if (row_.pattern_info().osu_table) outcome.table = table();
    if (row_.retest > 0) outcome.slowest = slowest_.collect(rank_group_);
    return outcome;
}

void Runner::measure_rounds() {
    began_ = last_flush_ = last_progress_ = rank_group_.now();
    signal_ = Signal{};
    const std::vector<std::int64_t> rounds = schedule_.requested_rounds();
    all_ = rounds.size();
    for (std::size_t done = 0; done < rounds.size() && !interrupted_; ++done) {
        const std::int64_t round = rounds[done];
        done_ = done;
        const bool begins_block =
            done > 0 && schedule_.connection_of(round) != schedule_.connection_of(rounds[done - 1]);
        if (row_.reconnect && begins_block) medium_.connect_anew();
        const Role role = schedule_.role(round);
        const int turns = row_.serial ? schedule_.slots(round) : 1;
        for (int turn = 0; turn < turns && !interrupted_; ++turn) {
            if (!begin_round()) break;
            if ((!role.idle() || is_by_size()) && (!row_.serial || role.slot == turn)) try {
                    take_part(round, role);
                } catch (const PeerFailure& failure) {
                    if (context_.store != nullptr) context_.store->rescue();
                    end_without(rank_group_, failure.rank(), round, failure.what());
                } catch (const Error& error) {  // of this rank only, such as a failure of its GPU
                    if (context_.store != nullptr) context_.store->rescue();
                    end_without(rank_group_, rank_group_.rank(), round, error.what());
                }
        }
        show_progress(done, rounds.size());
    }
    if (!interrupted_)
        measuring_s_ += rank_group_.barrier(signal_).largest;  // the last round ends when all ranks are back
}

// A barrier of all ranks before a round; false when one of them requests the end of the run. A stop between the turns
// of a serial round leaves that round to resume.
bool Runner::begin_round() {
    if (stop_requested != 0) signal_.flags |= Signal::stop;
    if (rank_group_.now() - last_flush_ > flush_interval_s) signal_.flags |= Signal::flush;
    const Signal all = rank_group_.barrier(signal_);
    signal_ = Signal{};
    measuring_s_ += all.largest;
    interrupted_ = (all.flags & Signal::stop) != 0;
    if (interrupted_) return false;
    if ((all.flags & Signal::flush) != 0 && context_.store != nullptr) flush_rounds();
    return true;
}

void Runner::flush() {
    context_.store->flush();
    rank_group_.barrier();  // ranks that wrote more arrive later
    last_flush_ = rank_group_.now();
}

void Runner::flush_rounds() {
    flush();
    context_.report.rounds(row_.name, done_, all_);
}

bool Runner::is_by_size() const {
    return context_.by_size && context_.store != nullptr && schedule_.total() == 1 && !row_.serial &&
           schedule_.pattern().background() == nullptr;
}

// After each size of a row of one round: a barrier of all ranks, then the results so far are written. False when a rank
// requests the end of the run: the size is dropped.
bool Runner::end_size(const Cell& cell, std::size_t done) {
    if (stop_requested != 0) signal_.flags |= Signal::stop;
    const Signal all = rank_group_.barrier(signal_);
    interrupted_ = (all.flags & Signal::stop) != 0;
    if (interrupted_) return false;
    if (!cell.sizes.empty()) context_.store->put(cell);
    flush();
    if (row_.validate) {
        const std::string corrupt = collect_damages(rank_group_, medium_.damages());
        context_.store->write_row(attributes("measuring", corrupt));
    }
    if (context_.progress && rank_group_.rank() == 0)
        std::fprintf(stderr, "fablint-engine: %s: size %zu of %zu\n", row_.name.c_str(), done, row_.sizes.size());
    std::this_thread::sleep_for(std::chrono::duration<double>(printing_s));
    return true;
}

void Runner::take_part(std::int64_t round, const Role& role) {
    const double begin = rank_group_.now();
    if (role.kind == Role::Kind::aggressor) {
        medium_.traffic().make(role, round);
        return;
    }
    const bool loaded = schedule_.has_background(round);
    if (loaded) medium_.traffic().wait_until_running();
    // The rank that leads first alternates, so that no rank always starts with cold caches.
    const bool lower = rank_group_.rank() < role.partner();
    const bool first = row_.single_direction ? lower : lower == (round % 2 == 0);
    const auto placed = [&](Cell cell) {
        cell.src = rank_group_.rank();
        cell.dst = role.partner();
        cell.round = static_cast<std::int32_t>(round);
        cell.repeat = static_cast<std::int32_t>(schedule_.repeat_of(round));
        cell.started = begin - context_.epoch;
        return cell;
    };
    std::size_t done = 0;
    GroupMeasurement::FollowUp follow_up;
    if (is_by_size()) follow_up = [&](const Cell& cell) { return end_size(placed(cell), ++done); };
    if (role.idle()) {  // it takes part in what all ranks do after each size
        while (done < row_.sizes.size() && follow_up({})) {
        }
        return;
    }
    const Cell cell = placed(medium_.measurement().measure(role, first, round, follow_up));
    if (loaded) medium_.traffic().leave();
    signal_.largest = rank_group_.now() - begin;
    if (interrupted_) return;                   // all sizes but the last are stored
    if (!cell.sizes.empty()) keep(cell, role);  // empty: another member of the group takes the time
}

void Runner::keep(const Cell& cell, const Role& role) {
    if (context_.store != nullptr) context_.store->put(cell);
    slowest_.add(cell);
    const bool once = role.kind != Role::Kind::pair || cell.src < cell.dst;
    if (row_.pattern_info().osu_table && once) append(table_cells_, cell);
}

void Runner::show_progress(std::size_t done, std::size_t all) {
    const double now = rank_group_.now();
    if (!context_.progress || rank_group_.rank() != 0 || now - last_progress_ < progress_interval_s) return;
    last_progress_ = now;
    const double left = (now - began_) / static_cast<double>(done + 1) * static_cast<double>(all - done - 1);
    std::fprintf(stderr, "fablint-engine: %s: round %zu of %zu, %.1f s left\n", row_.name.c_str(), done + 1, all, left);
}

// Each rank reports its first damage on stderr.
void Runner::report_damage() const {
    const std::vector<Damage> all = medium_.damages();
    if (all.empty()) return;
    const Damage& first = all.front();
    // A negative source: all ranks contribute to the result.
    const std::string source =
        first.src < 0 ? "of all ranks"
                      : "from rank " + std::to_string(first.src) + " (" + rank_group_.host_of(first.src) + ")";
    std::fprintf(stderr,
                 "fablint-engine: damaged: rank %d (%s) received a wrong byte at offset %zu of message %lld, %zu bytes "
                 "%s, row %s\n",
                 first.dst, rank_group_.host_of(first.dst).c_str(), first.offset, static_cast<long long>(first.message),
                 first.size, source.c_str(), row_.name.c_str());
}

std::string Runner::table() {
    std::vector<Cell> cells;
    const GatheredTexts texts = rank_group_.gather(std::string(table_cells_.begin(), table_cells_.end()));
    for (const std::string& text : texts.values())  // of two ranks none has the same cells
        for (Cell& cell : unpack(std::vector<char>(text.begin(), text.end()))) cells.push_back(std::move(cell));
    if (cells.empty()) return "";
    const Pattern& pattern = schedule_.pattern();
    return osu_table(row_, cells, row_.pattern_info().has_pairs() ? pattern.slots(0) : pattern.cells(0));
}

}  // namespace fablint

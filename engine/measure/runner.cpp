#include "measure/runner.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/permutation.hpp"
#include "output/osu.hpp"

namespace fablint {

namespace {

volatile std::sig_atomic_t stop_requested = 0;

// The contract is 5 s; the rounds between two looks at the clock come on top.
constexpr double flush_interval_s = 2.0;
constexpr double progress_interval_s = 1.0;

bool slower(const SlowPair& a, const SlowPair& b) { return a.time_s > b.time_s; }

// What the pattern reads: a round per line.
std::string rounds_lines(const RowOptions& row, const std::string& file_text) {
    std::string text = row.rounds.empty() ? file_text : row.rounds;
    if (!row.rounds.empty()) std::replace(text.begin(), text.end(), ';', '\n');
    return text;
}

}  // namespace

void request_stop() { stop_requested = 1; }

Runner::Runner(const RunContext& context, const RowOptions& row, const std::string& rounds_text)
    : context_(context), team_(context.team), row_(row), info_(kernel_named(row.kernel)) {
    PatternRequest request;
    request.kind = row.pattern;
    request.ranks = team_.size();
    request.matchings = row.matchings;
    request.rounds_text = rounds_lines(row, rounds_text);
    request.rounds_name = row.rounds.empty() ? row.rounds_file : "--rounds";
    request.rank_host = team_.rank_host();
    request.servers = row.servers;
    request.victims = row.victims.value_or(0);
    request.incast = !row.all_to_all;
    for (std::int64_t repeat = 0; repeat < row.repeats; ++repeat) {
        // Victims are the same in every repeat: it is their figures alone and under load that are compared.
        const std::int64_t draw = row.pattern == "victim-aggressor" ? 0 : repeat;
        request.seed = mix(row.seed, static_cast<std::uint64_t>(draw));
        patterns_.push_back(make_pattern(request));
    }
    rounds_per_repeat_ = patterns_.front()->rounds();
    if (info_.accepts("sync") && row.sync == "fence" && team_.size() != 2)
        throw usage_error("--sync fence synchronises all ranks of the run: it needs exactly 2, not " +
                          std::to_string(team_.size()));
    if (row_.barrier_each && patterns_.front()->seat(0, team_.size() - 1).idle())
        throw usage_error("--barrier sample needs a partner for every rank, and rank " +
                          std::to_string(team_.size() - 1) + " has none: use " +
                          (row_.pattern == "pair" ? "2 ranks" : "an even number of ranks"));
    if (info_.collective()) drop_sizes_beyond_memory();
}

// A collective's buffers grow with the number of ranks. Sizes that nobody asked for are left out where they do not fit.
void Runner::drop_sizes_beyond_memory() {
    constexpr std::size_t most = std::size_t{512} << 20;
    const std::unique_ptr<Kernel> kernel = info_.make(row_);
    const auto layout = kernel->dense() ? Payload::Layout::dense : Payload::Layout::spaced;
    const auto too_large = [&](std::size_t bytes) {
        return 2 * Payload::half_footprint(bytes, kernel->slots(1, 1, team_.size()), layout) > most;
    };
    const auto first = std::stable_partition(row_.sizes.begin(), row_.sizes.end(),
                                             [&](std::size_t bytes) { return !too_large(bytes); });
    if (first == row_.sizes.end()) return;
    if (row_.sizes_given || first == row_.sizes.begin())
        throw usage_error(row_.kernel + " of " + std::to_string(*first) + " bytes with " +
                          std::to_string(team_.size()) +
                          " ranks needs more than 512 MiB per rank: choose smaller --sizes");
    row_.sizes.erase(first, row_.sizes.end());
}

const Pattern& Runner::pattern_of(std::int64_t round) const {
    return *patterns_[static_cast<std::size_t>(round / rounds_per_repeat_)];
}

Seat Runner::seat(std::int64_t round) const { return pattern_of(round).seat(round % rounds_per_repeat_, team_.rank()); }

Grid Runner::grid() const {
    Grid grid;
    grid.layout = row_.pattern_info().layout;
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
    for (std::int64_t round = 0; round < rounds_per_repeat_ * row_.repeats; ++round) {
        const std::int64_t turn = round % rounds_per_repeat_;
        cells.push_back(row_.forward ? patterns_.front()->slots(turn) : patterns_.front()->cells(turn));
    }
    const bool alike = std::all_of(cells.begin(), cells.end(), [&](int count) { return count == cells.front(); });
    return alike ? Json(cells.front()) : Json::list(cells);
}

// What was asked for.
void Runner::describe_request(JsonObject& object) const {
    std::vector<int> windows, warmups;
    std::vector<std::int64_t> iterations;
    for (const std::size_t size : row_.sizes) {
        windows.push_back(row_.window_for(size, patterns_.front()->fan()));
        warmups.push_back(row_.warmup_for(size));
        if (row_.iterations) iterations.push_back(*row_.iterations_for(size));
    }
    JsonObject stop;
    stop.add("samples", row_.stop.samples ? Json(*row_.stop.samples) : Json::null())
        .add("budget_s", row_.stop.budget_s)
        .add("precision", row_.stop.precision ? Json(*row_.stop.precision) : Json::null())
        .add("iterations", row_.iterations ? Json::list(iterations) : Json::null());
    const bool pairs = row_.pattern_info().pairs();
    object.add("kernel", row_.kernel)
        .add("pattern", row_.pattern)
        .add("transport", row_.transport)
        .add("memory", row_.memory)
        .add("order", row_.serial ? "serial" : "parallel")
        .add("options", row_.text())
        .add("quantity", word(info_.quantity))
        .add("payload", word(row_.pattern_info().sender == StarSender::hub ? Sender::dst : info_.payload))
        .add("directions", !pairs         ? "one"
                           : row_.forward ? "forward"
                                          : "both")
        .add("repeats", row_.repeats)
        .add("seed", row_.seed)
        .add("windows", Json::list(windows))
        .add("warmup", row_.warmup.small)
        .add("warmups", Json::list(warmups))
        .add("stop", stop.json())
        .add("validate", row_.validate);
    if (info_.windowed()) object.add("buffers", row_.single_buffer ? "single" : "distinct");
    if (pairs) object.add("barrier", row_.barrier_each ? "sample" : "start");
    object.add("mean", row_.loop_mean ? "loop" : "samples");
    if (info_.one_sided()) object.add("win", row_.win);
    if (info_.accepts("sync")) object.add("sync", row_.sync);
    if (info_.accepts("server-flight")) object.add("server_flight", row_.server_flight);
    if (info_.accepts("workers"))
        object.add("workers", Json::list(std::vector<int>{row_.workers.senders, row_.workers.receivers}));
    if (row_.applies("servers")) object.add("servers", row_.servers);
    if (row_.applies("aggressor")) object.add("aggressor", row_.all_to_all ? "all-to-all" : "incast");
    if (!row_.retest_of.empty()) object.add("retest_of", row_.retest_of);
}

Json Runner::attributes(const char* state, const std::string& corrupt) const {
    JsonObject object;
    describe_request(object);
    object.add("layout", row_.pattern_info().layout == Layout::matrix ? "matrix" : "list")
        .add("state", state)
        .add("rounds", rounds_per_repeat_ * row_.repeats)
        .add("cells_per_round", cells_per_round())
        .add("measuring_s", measuring_s_)
        .add("wall_s", began_ == 0.0 ? 0.0 : team_.now() - began_);
    const std::vector<int> aggressors = patterns_.front()->aggressors();
    if (!aggressors.empty()) object.add("aggressors", Json::list(aggressors));
    if (!corrupt.empty()) object.add("corrupt", Json::parsed("[" + corrupt + "]"));
    if (context_.facts != nullptr)
        object.add("counters", JsonObject().add("before", counters_before_).add("after", counters_after_).json());
    if (tcp_.text() != "null") object.add("tcp", tcp_);
    return object.json();
}

void Runner::make_meeting() {
    transport_ = transport_named(row_.transport).make();
    memory_ = memory_named(row_.memory).make();
    const Pattern& pattern = *patterns_.front();
    Meeting::Crowd crowd;
    crowd.fan = pattern.fan();
    crowd.hub_leads = row_.pattern_info().sender == StarSender::hub;
    if (row_.pattern_info().stars())
        for (std::int64_t round = 0; round < pattern.rounds(); ++round)
            crowd.own_fan = std::max(crowd.own_fan, static_cast<int>(pattern.seat(round, team_.rank()).peers.size()));
    const double overhead_s = context_.instrument.clock.overhead_s;
    meeting_ = std::make_unique<Meeting>(team_, context_.clock, overhead_s, row_, *transport_, *memory_, crowd);
    if (!pattern.aggressors().empty())
        traffic_ = std::make_unique<Traffic>(team_, context_.clock, overhead_s, pattern, !row_.all_to_all, *transport_,
                                             *memory_);
}

RowOutcome Runner::run() {
    team_.agree(attempt([&] { make_meeting(); }));
    const std::vector<std::int64_t> sizes(row_.sizes.begin(), row_.sizes.end());
    if (context_.facts != nullptr) counters_before_ = context_.facts->counters_of_all_hosts();
    if (context_.store != nullptr)
        context_.store->begin_row(row_.name, grid(), sizes, row_.histogram, attributes("measuring", ""));
    context_.retransmissions.begin();
    measure_rounds();
    tcp_ = context_.retransmissions.collect();
    if (context_.facts != nullptr) counters_after_ = context_.facts->counters_of_all_hosts();
    RowOutcome outcome;
    outcome.interrupted = interrupted_;
    const std::string corrupt = collect_damages();
    outcome.damaged = team_.maximum(meeting_->damages().empty() ? 0.0 : 1.0) > 0.0;  // every rank learns that
    if (context_.store != nullptr)
        context_.store->end_row(attributes(interrupted_ ? "interrupted" : "complete", corrupt));
    if (interrupted_) return outcome;
    if (row_.pattern_info().osu_table) outcome.table = table();
    if (row_.retest > 0) outcome.slowest = collect_slowest();
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
            if (!mine.idle() && (!row_.serial || mine.slot == turn)) take_part(round, mine);
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
    if (seat.role == Seat::Role::aggressor) {
        traffic_->make(seat, round);
        return;
    }
    const bool loaded = pattern_of(round).loaded(round % rounds_per_repeat_);
    if (loaded) traffic_->await();
    // Who leads first alternates, so that no rank is always the one that starts cold.
    const bool lower = team_.rank() < seat.partner();
    const bool first = row_.forward ? lower : lower == (round % 2 == 0);
    Cell cell = meeting_->meet(seat, first, round);
    if (loaded) traffic_->leave();
    cell.src = team_.rank();
    cell.dst = seat.partner();
    cell.round = static_cast<std::int32_t>(round);
    cell.repeat = static_cast<std::int32_t>(round / rounds_per_repeat_);
    cell.started = begin - context_.epoch;
    signal_.largest = team_.now() - begin;
    if (cell.sizes.empty()) return;  // another member of the group took the time
    if (context_.store != nullptr) context_.store->put(cell);
    if (row_.retest > 0) keep_slow(cell);
    const bool once = seat.role != Seat::Role::pair || lower;
    if (row_.pattern_info().osu_table && once) append(table_cells_, cell);
}

void Runner::keep_slow(const Cell& cell) {
    const SlowPair pair{cell.sizes.back().mean, std::min(cell.src, cell.dst), std::max(cell.src, cell.dst)};
    const auto known = std::find_if(slow_.begin(), slow_.end(), [&](const SlowPair& other) {
        return other.src == pair.src && other.dst == pair.dst;
    });
    if (known == slow_.end()) {
        slow_.push_back(pair);
    } else {
        known->time_s = std::max(known->time_s, pair.time_s);
    }
    std::sort(slow_.begin(), slow_.end(), slower);
    if (slow_.size() > static_cast<std::size_t>(row_.retest)) slow_.pop_back();
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

// Of all ranks' slowest pairs the slowest, each once, on all ranks.
std::string Runner::collect_slowest() {
    const auto* bytes = reinterpret_cast<const char*>(slow_.data());
    std::vector<SlowPair> all;
    for (const std::string& text : team_.gather(std::string(bytes, slow_.size() * sizeof(SlowPair)))) {
        const std::size_t before = all.size();
        all.resize(before + text.size() / sizeof(SlowPair));
        if (!text.empty()) std::memcpy(&all[before], text.data(), text.size());
    }
    std::sort(all.begin(), all.end(), slower);
    std::set<std::pair<int, int>> chosen;
    std::string rounds;
    for (const SlowPair& pair : all) {
        if (static_cast<int>(chosen.size()) == row_.retest) break;
        if (!chosen.insert({pair.src, pair.dst}).second) continue;
        rounds += (rounds.empty() ? "" : ";") + std::to_string(pair.src) + "-" + std::to_string(pair.dst);
    }
    return team_.broadcast(rounds);
}

std::string Runner::table() {
    std::vector<Cell> cells;
    for (const std::string& text : team_.gather(std::string(table_cells_.begin(), table_cells_.end())))
        for (Cell& cell : unpack(std::vector<char>(text.begin(), text.end()))) cells.push_back(std::move(cell));
    if (cells.empty()) return "";
    const Pattern& pattern = *patterns_.front();
    return osu_table(row_, cells, row_.pattern_info().pairs() ? pattern.slots(0) : pattern.cells(0));
}

}  // namespace fablint

#include "measure/runner.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <thread>

#include "gpu/gpu_runtime.hpp"
#include "output/osu.hpp"
#include "ranks/watchdog.hpp"
#include "transports/staged.hpp"

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

Runner::Runner(const RunContext& context, const RowOptions& row, const std::string& rounds_text)
    : context_(context),
      rank_group_(context.rank_group),
      row_(row),
      info_(kernel_named(row.kernel)),
      schedule_(context.rank_group, row_, rounds_text),
      slowest_(row.retest) {
    if (info_.accepts("sync") && row.sync == "fence" && rank_group_.size() != 2)
        throw usage_error("--sync fence synchronises all ranks of the run: it needs exactly 2, not " +
                          std::to_string(rank_group_.size()));
    if (row_.barrier_each && schedule_.pattern().role(0, rank_group_.size() - 1).idle())
        throw usage_error("--barrier sample needs a partner for every rank, and rank " +
                          std::to_string(rank_group_.size() - 1) + " has none: use " +
                          (row_.pattern == "pair" ? "2 ranks" : "an even number of ranks"));
    if (transport_named(row.transport).is_within_host) refuse_pairs_of_hosts();
    if (info_.collective()) drop_sizes_beyond_memory();
    if (!info_.sends_messages()) info_.make(row_);  // throws where the row does not suit it
}

// The same on all ranks: no rank measures anything before all rows have passed.
void Runner::refuse_pairs_of_hosts() const {
    const auto pair = schedule_.pair_of_hosts(rank_group_.rank_host());
    if (!pair) return;
    const auto rank_text = [&](int rank) {
        return "rank " + std::to_string(rank) + " on " + rank_group_.host_of(rank);
    };
    throw usage_error("transport " + row_.transport + " connects ranks of one host, and row " + row_.name +
                      " has a pair of " + rank_text(pair->first) + " and " + rank_text(pair->second) +
                      ": measure one host, or pairs within hosts (--pattern rounds), or use --transport nccl or mpi");
}

// The buffers of a collective grow with the number of ranks. Default sizes that do not fit into memory are dropped.
// Sizes that were asked for may fill a GPU, whose driver refuses what it cannot allocate; a host may have other work.
void Runner::drop_sizes_beyond_memory() {
    if (row_.sizes_given && memory_named(row_.memory).gpu) return;
    constexpr std::size_t most = std::size_t{512} << 20;
    const std::unique_ptr<Kernel> kernel = info_.make(row_);
    const auto layout = kernel->traits().slot_per_rank ? Payload::Layout::dense : Payload::Layout::spaced;
    const auto too_large = [&](std::size_t bytes) {
        return 2 * Payload::half_footprint(bytes, kernel->slots(1, 1, rank_group_.size()), layout) > most;
    };
    const auto first = std::stable_partition(row_.sizes.begin(), row_.sizes.end(),
                                             [&](std::size_t bytes) { return !too_large(bytes); });
    if (first == row_.sizes.end()) return;
    if (row_.sizes_given || first == row_.sizes.begin())
        throw usage_error(row_.kernel + " of " + std::to_string(*first) + " bytes with " +
                          std::to_string(rank_group_.size()) +
                          " ranks needs more than 512 MiB per rank: choose smaller --sizes");
    row_.sizes.erase(first, row_.sizes.end());
}

Json Runner::attributes(const char* state, const std::string& corrupt) const {
    RowState row_state;
    row_state.state = state;
    row_state.corrupt = corrupt;
    row_state.gpu_path = gpu_path_;
    row_state.measuring_s = measuring_s_;
    row_state.wall_s = began_ == 0.0 ? 0.0 : rank_group_.now() - began_;
    if (context_.facts != nullptr)
        row_state.counters = JsonObject().add("before", counters_before_).add("after", counters_after_).json();
    row_state.cpu_wait = cpu_waited_;
    row_state.tcp_segments = tcp_segments_;
    row_state.devices = devices_;
    return row_attributes(row_, schedule_, row_state);
}

TransportSettings Runner::transport_settings() const {
    TransportSettings settings;
    settings.device = row_.device;
    settings.streams = row_.streams;
    settings.provider = row_.ofi_provider;
    settings.gid_index = row_.gid_index;
    settings.service_level = std::stoi(row_.service_level);
    settings.mtu = row_.mtu.empty() ? 0 : std::stoi(row_.mtu);
    settings.required = info_.required;
    settings.rank = rank_group_.rank();
    settings.ranks = rank_group_.size();
    settings.gpu = memory_named(row_.memory).gpu;
    settings.yielding = rank_group_.yielding();
    settings.interfaces = context_.interfaces;
    settings.connect_limit_s = context_.connect_limit_s;
    return settings;
}

void Runner::open() {
    MemorySettings settings;
    settings.index_on_host = index_on_host(rank_group_.rank_host(), rank_group_.rank());
    settings.sysfs = context_.sysfs;
    memory_ = make_memory(row_.memory, settings);
    transport_ = transport_named(row_.transport).make(transport_settings());
}

// Collective: the messages of all ranks take the same path.
void Runner::choose_gpu_path(GpuApi gpu) {
    const bool staged = rank_group_.maximum(transport_->takes_gpu_memory(gpu) ? 0.0 : 1.0) > 0.0;
    gpu_path_ = staged ? "staged" : "direct";
    if (context_.progress && rank_group_.rank() == 0 && began_ == 0.0)
        std::fprintf(stderr, "fablint-engine: %s: %s\n", row_.name.c_str(),
                     staged ? "messages of GPU memory are staged through host memory: the transport does not report "
                              "that it takes them directly"
                            : "the transport takes messages of GPU memory directly");
    if (staged) rank_group_.throw_if_any_failed(attempt([&] { stage(gpu); }));
}

void Runner::stage(GpuApi gpu) {
    if (info_.required != 0)
        throw usage_error(row_.kernel + " requires a transport with " + capability_names(info_.required) +
                          " that takes GPU memory directly, which " + row_.transport +
                          " does not report here: choose --memory host, or a library built for the GPUs");
    transport_ = make_staged_transport(std::move(transport_), *memory_, GpuRuntime::of(gpu));
}

void Runner::prepare() {
    const Pattern& pattern = schedule_.pattern();
    GroupMeasurement::GroupShape group_shape;
    group_shape.fan = pattern.fan();
    group_shape.own_fan = schedule_.largest_fan();
    group_shape.hub_leads = row_.pattern_info().sender == StarSender::hub;
    const double overhead_s = context_.instrument.clock.overhead_s;
    measurement_ = std::make_unique<GroupMeasurement>(rank_group_, context_.clock, overhead_s, row_, *transport_,
                                                      *memory_, group_shape);
    if (is_by_size()) measurement_->set_stop([] { return stop_requested != 0; });
    if (pattern.background() != nullptr)
        traffic_ = std::make_unique<Traffic>(rank_group_, context_.clock, overhead_s, pattern, !row_.all_to_all,
                                             *transport_, *memory_);
}

// Collective.
void Runner::connect() {
    rank_group_.throw_if_any_failed(attempt([&] { open(); }));
    if (const auto gpu = memory_named(row_.memory).gpu; gpu && info_.sends_messages()) choose_gpu_path(*gpu);
    rank_group_.throw_if_any_failed(attempt([&] { prepare(); }));
}

// Collective. No rank closes or releases what another one still uses.
void Runner::disconnect() {
    rank_group_.barrier();
    transport_->disconnect();
    rank_group_.barrier();
}

// Collective. Libraries may keep connections that they have opened for an address: all is opened anew, as by another
// start of the program, the message buffers included.
void Runner::connect_anew() {
    disconnect();
    earlier_damages_ = damages();
    traffic_.reset();
    measurement_.reset();
    transport_.reset();
    memory_.reset();
    connect();
}

RowOutcome Runner::run() {
    RowOutcome outcome;
    if ((outcome.refusal = attempt([&] { connect(); }))) return outcome;
    const std::vector<std::int64_t> sizes(row_.sizes.begin(), row_.sizes.end());
    if (context_.facts != nullptr) counters_before_ = context_.facts->counters_of_all_hosts();
    if (context_.store != nullptr)
        context_.store->begin_row(row_.name, schedule_.grid(), sizes, row_.histogram, attributes("measuring", ""));
    context_.retransmissions.begin();
    cpu_wait_.begin();
    measure_rounds();
    cpu_waited_ = cpu_wait_.collect();
    disconnect();
    tcp_segments_ = context_.retransmissions.collect();
    devices_ = collect_devices();
    if (context_.facts != nullptr) counters_after_ = context_.facts->counters_of_all_hosts();
    outcome.interrupted = interrupted_;
    report_damage();
    const std::string corrupt = collect_damages();
    outcome.damaged = rank_group_.maximum(damages().empty() ? 0.0 : 1.0) > 0.0;  // the same on all ranks
    const char* const state = interrupted_ ? "interrupted" : "complete";
    if (context_.store != nullptr) context_.store->end_row(attributes(state, corrupt));
    if (interrupted_) return outcome;
    if (row_.pattern_info().osu_table) outcome.table = table();
    if (row_.retest > 0) outcome.slowest = slowest_.collect(rank_group_);
    return outcome;
}

void Runner::measure_rounds() {
    began_ = last_flush_ = last_progress_ = rank_group_.now();
    signal_ = Signal{};
    const std::vector<std::int64_t> rounds = schedule_.requested_rounds();
    for (std::size_t done = 0; done < rounds.size() && !interrupted_; ++done) {
        const std::int64_t round = rounds[done];
        const bool begins_block =
            done > 0 && schedule_.connection_of(round) != schedule_.connection_of(rounds[done - 1]);
        if (row_.reconnect && begins_block) connect_anew();
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
    if ((all.flags & Signal::flush) != 0 && context_.store != nullptr) flush();
    return true;
}

void Runner::flush() {
    context_.store->flush();
    rank_group_.barrier();  // ranks that wrote more arrive later
    last_flush_ = rank_group_.now();
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
        const std::string corrupt = collect_damages();
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
        traffic_->make(role, round);
        return;
    }
    const bool loaded = schedule_.has_background(round);
    if (loaded) traffic_->wait_until_running();
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
    const Cell cell = placed(measurement_->measure(role, first, round, follow_up));
    if (loaded) traffic_->leave();
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
    const std::vector<Damage> all = damages();
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

std::vector<Damage> Runner::damages() const {
    std::vector<Damage> all = earlier_damages_;
    all.insert(all.end(), measurement_->damages().begin(), measurement_->damages().end());
    return all;
}

// The damages of all ranks as JSON objects, on rank 0.
std::string Runner::collect_damages() {
    std::string own;
    for (const Damage& damage : damages())
        own += (own.empty() ? "" : ",") + JsonObject()
                                              .add("src", damage.src)
                                              .add("dst", damage.dst)
                                              .add("size", static_cast<std::uint64_t>(damage.size))
                                              .add("message", damage.message)
                                              .add("offset", static_cast<std::uint64_t>(damage.offset))
                                              .json()
                                              .text();
    std::string all;
    for (const std::string& text : rank_group_.gather(own))
        if (!text.empty()) all += (all.empty() ? "" : ",") + text;
    return all;
}

// The choice of the transport's library and the ranks that have it, on rank 0: {"tcp/eth0": "0-3,5"}.
Json Runner::collect_devices() {
    std::map<std::string, Ranges> ranks_of;
    const std::vector<std::string> texts = rank_group_.gather(transport_->devices());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (texts[i].empty()) continue;
        const auto rank = static_cast<std::int64_t>(i);
        Ranges& ranges = ranks_of[texts[i]];
        if (ranges.empty() || ranges.back().second != rank - 1) ranges.emplace_back(rank, rank);
        ranges.back().second = rank;
    }
    if (ranks_of.empty()) return Json::null();
    JsonObject object;
    for (const auto& [devices, ranges] : ranks_of) object.add(devices, to_text(ranges));
    return object.json();
}

std::string Runner::table() {
    std::vector<Cell> cells;
    for (const std::string& text : rank_group_.gather(std::string(table_cells_.begin(), table_cells_.end())))
        for (Cell& cell : unpack(std::vector<char>(text.begin(), text.end()))) cells.push_back(std::move(cell));
    if (cells.empty()) return "";
    const Pattern& pattern = schedule_.pattern();
    return osu_table(row_, cells, row_.pattern_info().pairs() ? pattern.slots(0) : pattern.cells(0));
}

}  // namespace fablint

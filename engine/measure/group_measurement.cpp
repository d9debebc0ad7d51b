#include "measure/group_measurement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fablint {

namespace {

constexpr std::int64_t longest_batch = 1'000'000;
constexpr std::size_t damages_kept = 16;  // per rank: enough to see the pattern

// The largest divisor of `total` that is not above `most`.
std::int64_t divisor_up_to(std::int64_t total, std::int64_t most) {
    for (std::int64_t divisor = std::min(most, total); divisor > 1; --divisor)
        if (total % divisor == 0) return divisor;
    return 1;
}

}  // namespace

GroupMeasurement::GroupMeasurement(RankGroup& rank_group, const Clock& clock, double clock_overhead_s,
                                   const RowOptions& row, Transport& transport, Memory& memory,
                                   const GroupShape& group_shape)
    : rank_group_(rank_group),
      clock_(clock),
      shortest_batch_s_(100.0 * clock_overhead_s),
      row_(row),
      info_(kernel_named(row.kernel)),
      group_shape_(group_shape),
      kernel_(info_.make(row)),
      transport_(transport),
      connections_(rank_group, transport) {
    const Payload::Layout layout = kernel_->traits().slot_per_rank ? Payload::Layout::dense
                                   : row.single_buffer             ? Payload::Layout::single
                                                                   : Payload::Layout::spaced;
    // Small sizes have the widest windows, large ones the most bytes.
    std::size_t half = 0;
    for (const std::size_t size : row.sizes)
        half = std::max(half, Payload::half_footprint(size,
                                                      kernel_->slots(row.window_for(size, group_shape.fan),
                                                                     group_shape.own_fan, rank_group.size()),
                                                      layout));
    if (info_.one_sided()) {
        rank_group.throw_if_any_failed(attempt([&] {
            window_ = transport.rma()->expose(memory, {half, row.win, row.sync});
        }));
        window_connections_.emplace(rank_group, *window_);
        // Accesses of the peer are executed while this rank waits for its next order.
        if (transport.has_active_target()) rank_group.set_progress([&transport] { return transport.serve(); });
    }
    void* base = window_ ? window_->base() : nullptr;
    const bool send_half = kernel_->traits().exposes_sent;
    payload_ = std::make_unique<Payload>(memory, half, layout, send_half ? nullptr : base, send_half ? base : nullptr,
                                         row.in_place);
}

GroupMeasurement::~GroupMeasurement() {
    if (window_) rank_group_.set_progress(nullptr);
}

void GroupMeasurement::connect(const std::vector<int>& peers) {
    connections_.connect(peers, round_);
    if (window_connections_) window_connections_->connect(peers, round_);
}

Cell GroupMeasurement::measure(const Role& role, bool first, std::int64_t round, const FollowUp& follow_up) {
    round_ = round;
    connect(role.peers);
    Cell cell;
    const double deadline = clock_.now() + row_.stop.budget_s;
    const bool both_directions = role.kind == Role::Kind::pair && !info_.bidirectional && !row_.single_direction;
    const std::size_t directions = both_directions ? 2 : 1;
    std::size_t left = row_.sizes.size() * directions;
    for (const std::size_t bytes : row_.sizes) {
        payload_->set_size(bytes);
        const Endpoint end = endpoint_of(role, bytes);
        for (std::size_t direction = 0; direction < directions; ++direction, --left) {
            const Task task = task_of(role, end, first == (direction == 0));
            samples_.clear();
            loop_s_ = 0.0;
            next_message_ = 0;
            if (task.coordinator == rank_group_.rank()) {
                coordinate(task, (deadline - clock_.now()) / static_cast<double>(left));
            } else {
                participate(task);
            }
            if (!task.takes_time) continue;
            cell.sizes.push_back(summary(samples_));
            if (row_.loop_mean)
                cell.sizes.back().mean = static_cast<float>(loop_s_ / static_cast<double>(samples_.count()));
            if (row_.histogram) cell.histograms.push_back(bucket_counts(samples_));
        }
        if (follow_up && !follow_up(cell)) break;
    }
    rank_group_.heartbeat().busy();
    return cell;
}

void GroupMeasurement::make_traffic(const Role& role, std::int64_t round, const std::function<bool()>& goes_on) {
    constexpr double block_s = 0.01;
    round_ = round;
    connect(role.peers);
    const std::size_t bytes = row_.sizes.front();
    payload_->set_size(bytes);
    const Task task = task_of(role, endpoint_of(role, bytes), false);
    if (task.coordinator == rank_group_.rank()) {
        Order order{1, 1, false};
        do {
            const double took_s = announce(task, order);
            const double factor = took_s > 0.0 ? std::clamp(block_s / took_s, 0.25, 4.0) : 4.0;
            order.batch =
                std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(order.batch) * factor));
        } while (goes_on());
        announce(task, Order{});
    } else {
        participate(task);
    }
    rank_group_.heartbeat().busy();
}

Endpoint GroupMeasurement::endpoint_of(const Role& role, std::size_t bytes) const {
    return {transport_,         window_.get(),      *payload_, role.peers,
            rank_group_.rank(), rank_group_.size(), bytes,     row_.window_for(bytes, group_shape_.fan)};
}

// In a pair the leader of the direction coordinates and takes the time. In a star the hub coordinates, since it alone
// exchanges messages with every member, and each leaf takes its own time. In the world rank 0 coordinates and all ranks
// take the time.
GroupMeasurement::Task GroupMeasurement::task_of(const Role& role, const Endpoint& end, bool leads_pair) const {
    const bool heads = role.head == rank_group_.rank();
    const std::vector<int> led = heads ? role.peers : std::vector<int>();
    switch (role.kind) {
        case Role::Kind::pair:
            return {end,
                    leads_pair,
                    leads_pair || info_.bidirectional,
                    {role.partner()},
                    leads_pair ? rank_group_.rank() : role.partner(),
                    false};
        case Role::Kind::hub:
        case Role::Kind::leaf:
            return {end, heads == group_shape_.hub_leads, !heads, led, role.head, true};
        case Role::Kind::world: {
            std::vector<int> others(heads ? static_cast<std::size_t>(rank_group_.size()) - 1 : 0);
            std::iota(others.begin(), others.end(), 1);
            return {end, true, true, std::move(others), role.head, true};
        }
        case Role::Kind::aggressor:
            return {end, info_.bidirectional || !heads, false, led, role.head, true};
        case Role::Kind::idle:
            break;
    }
    return {end, false, false, {}, -1, false};
}

void GroupMeasurement::coordinate(const Task& task, double allotted_s) {
    // Pairs with a common barrier before every sample must take the same number of samples.
    if (row_.barrier_each) allotted_s = std::numeric_limits<double>::infinity();
    const double deadline = clock_.now() + allotted_s;
    warm_up(task, clock_.now() + 0.1 * allotted_s);
    Order order;
    order.timed = true;
    order.batch = batch_for(task);
    StopRule stop = row_.stop;
    if (const auto iterations = row_.iterations_for(task.end.bytes)) stop.samples = *iterations / order.batch;
    samples_.clear();
    double sample_s = 0.0;
    order.batches = stop.samples ? std::min(StopRule::fewest, *stop.samples) : StopRule::fewest;
    do {
        sample_s = announce(task, order) / static_cast<double>(order.batches);
        const double left_s = deadline - clock_.now();
        if (stop.finished(samples_, left_s)) break;
        // Pairs that pass common barriers cannot end a size one by one.
        if (is_stopped_ && !row_.barrier_each && is_stopped_()) break;
        order.batches = stop.next_block(samples_, sample_s, left_s);
    } while (true);
    announce(task, Order{});
}

// The first repetition is timed on its own: it may set up a connection, and it shows how many more fit into the time.
void GroupMeasurement::warm_up(const Task& task, double deadline) {
    const int warmup = row_.warmup_for(task.end.bytes);
    if (warmup == 0) return;
    const double first_s = announce(task, {1, 1, false});
    const double affordable = first_s > 0.0 ? std::max((deadline - clock_.now()) / first_s, 0.0) : warmup;
    const auto more = static_cast<std::int64_t>(std::min<double>(warmup - 1, affordable));
    // With --validate every repetition is checked on its own, since accumulations add up at the target.
    if (more > 0) announce(task, row_.validate ? Order{more, 1, false} : Order{1, more, false});
}

std::int64_t GroupMeasurement::batch_for(const Task& task) {
    if (row_.validate) return 1;
    const auto iterations = row_.iterations_for(task.end.bytes);
    const std::int64_t batch = row_.batch ? *row_.batch : kernel_->traits().one_by_one ? 1 : calibrate(task);
    return iterations ? divisor_up_to(*iterations, batch) : batch;
}

std::int64_t GroupMeasurement::calibrate(const Task& task) {
    std::int64_t batch = 1;
    while (batch < longest_batch) {
        const double took_s = announce(task, {1, batch, false});
        if (took_s >= shortest_batch_s_) break;
        const double factor = took_s > 0.0 ? 1.2 * shortest_batch_s_ / took_s : 16.0;
        batch = static_cast<std::int64_t>(std::ceil(static_cast<double>(batch) * std::clamp(factor, 1.5, 16.0)));
    }
    return batch;
}

// Announces the order, waits until all members are ready, and executes it. Returns its duration, s.
double GroupMeasurement::announce(const Task& task, const Order& order) {
    char ready = 0;
    const std::int64_t repetitions = order.batches * order.batch;
    if (repetitions > 0) kernel_->arm(task.end, task.leads, repetitions);
    if (!task.participants.empty())  // the first message between two ranks waits for their connection
        rank_group_.heartbeat().measuring(round_, task.many ? -1 : task.participants.front());
    for (const int rank : task.participants) rank_group_.send_control(rank, &order, sizeof order);
    for (const int rank : task.participants) receive(task, rank, ready);
    if (task.many)
        for (const int rank : task.participants) rank_group_.send_control(rank, &ready, sizeof ready);
    if (repetitions == 0) return 0.0;
    rank_group_.heartbeat().measuring(round_, task.many ? -1 : task.participants.front());
    const double took_s = run(task, order);
    kernel_->disarm(task.end, task.leads);
    return took_s;
}

void GroupMeasurement::participate(const Task& task) {
    char ready = 1;
    for (Order order;;) {
        receive(task, task.coordinator, order);
        const std::int64_t repetitions = order.batches * order.batch;
        if (repetitions > 0) kernel_->arm(task.end, task.leads, repetitions);
        rank_group_.send_control(task.coordinator, &ready, sizeof ready);
        if (task.many) receive(task, task.coordinator, ready);
        if (repetitions == 0) return;
        rank_group_.heartbeat().measuring(round_, task.many ? -1 : task.coordinator);
        run(task, order);
        kernel_->disarm(task.end, task.leads);
    }
}

// The samples of a block are added after the block, to keep the time between two samples short.
double GroupMeasurement::run(const Task& task, const Order& order) {
    times_.assign(static_cast<std::size_t>(order.batches), 0.0);
    double total_s = 0.0;
    const double first_began = clock_.now();
    for (double& time_s : times_) {
        if (row_.validate) prepare_check(task);
        if (row_.barrier_each) transport_.collectives()->barrier();
        kernel_->align(task.end);
        const double begin = clock_.now();
        if (task.leads) kernel_->lead(task.end, order.batch);
        if (!task.leads) kernel_->follow(task.end, order.batch);
        time_s = clock_.now() - begin;
        rank_group_.heartbeat()
            .beat();  // a block is sized by its first samples: on CPUs shared since, it may last minutes
        total_s += time_s;
        if (row_.validate) {
            gather(task);  // one-sided writes are complete when their origin has arrived
            inspect(task);
        }
    }
    const double block_s = clock_.now() - first_began;
    transport_.finish();
    const double per_message = 1.0 / (static_cast<double>(order.batch) * kernel_->messages(task.end.window));
    const bool heads = task.coordinator == rank_group_.rank();
    if (order.timed && (task.takes_time || heads)) {
        for (const double time_s : times_) samples_.add(time_s * per_message);
        loop_s_ += (row_.validate ? total_s : block_s) * per_message;  // filling and checking are not tasks of the loop
    }
    return total_s;
}

void GroupMeasurement::prepare_check(const Task& task) {
    kernel_->fill(task.end, task.leads, next_message_);
    if (window_) window_->settle();
    gather(task);
}

// A barrier of the group.
void GroupMeasurement::gather(const Task& task) {
    char ready = 0;
    if (task.coordinator == rank_group_.rank()) {
        for (const int rank : task.participants) receive(task, rank, ready);
        for (const int rank : task.participants) rank_group_.send_control(rank, &ready, sizeof ready);
    } else {
        rank_group_.send_control(task.coordinator, &ready, sizeof ready);
        receive(task, task.coordinator, ready);
    }
}

void GroupMeasurement::inspect(const Task& task) {
    if (window_) window_->settle();
    std::vector<Damage> damages;
    kernel_->check(task.end, task.leads, next_message_, damages);
    next_message_ += task.end.window;
    for (const Damage& damage : damages)
        if (damages_.size() < damages_kept) damages_.push_back(damage);
}

}  // namespace fablint

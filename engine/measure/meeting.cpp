#include "measure/meeting.hpp"

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

Meeting::Meeting(Team& team, const Clock& clock, double clock_overhead_s, const RowOptions& row, Transport& transport,
                 Memory& memory, const Crowd& crowd)
    : team_(team),
      clock_(clock),
      shortest_batch_s_(100.0 * clock_overhead_s),
      row_(row),
      info_(kernel_named(row.kernel)),
      crowd_(crowd),
      kernel_(info_.make(row)),
      transport_(transport) {
    const Payload::Layout layout = kernel_->dense()    ? Payload::Layout::dense
                                   : row.single_buffer ? Payload::Layout::single
                                                       : Payload::Layout::spaced;
    // Small sizes have the widest windows, large ones the most bytes.
    std::size_t half = 0;
    for (const std::size_t size : row.sizes)
        half = std::max(half,
                        Payload::half_footprint(
                            size, kernel_->slots(row.window_for(size, crowd.fan), crowd.own_fan, team.size()), layout));
    if (info_.one_sided()) window_ = transport.expose(memory, {half, row.win, row.sync});
    void* base = window_ ? window_->base() : nullptr;
    const bool send_half = kernel_->exposes_what_is_sent();
    payload_ = std::make_unique<Payload>(memory, half, layout, send_half ? nullptr : base, send_half ? base : nullptr);
}

Cell Meeting::meet(const Seat& seat, bool first, std::int64_t round) {
    Cell cell;
    const double deadline = clock_.now() + row_.stop.budget_s;
    const bool both_directions = seat.role == Seat::Role::pair && !info_.bidirectional && !row_.forward;
    const std::size_t directions = both_directions ? 2 : 1;
    std::size_t left = row_.sizes.size() * directions;
    round_ = round;
    for (const std::size_t bytes : row_.sizes) {
        payload_->set_size(bytes);
        const End end = end_of(seat, bytes);
        for (std::size_t direction = 0; direction < directions; ++direction, --left) {
            const Part part = part_of(seat, end, first == (direction == 0));
            samples_.clear();
            loop_s_ = 0.0;
            next_message_ = 0;
            if (part.commander == team_.rank()) {
                command(part, (deadline - clock_.now()) / static_cast<double>(left));
            } else {
                obey(part);
            }
            if (!part.takes_time) continue;
            cell.sizes.push_back(summary(samples_));
            if (row_.loop_mean)
                cell.sizes.back().mean = static_cast<float>(loop_s_ / static_cast<double>(samples_.count()));
            if (row_.histogram) cell.histograms.push_back(bucket_counts(samples_));
        }
    }
    team_.heartbeat().busy();
    return cell;
}

void Meeting::make_traffic(const Seat& seat, std::int64_t round, const std::function<bool()>& goes_on) {
    constexpr double block_s = 0.01;
    round_ = round;
    const std::size_t bytes = row_.sizes.front();
    payload_->set_size(bytes);
    const Part part = part_of(seat, end_of(seat, bytes), false);
    if (part.commander == team_.rank()) {
        Order order{1, 1, false};
        do {
            const double took_s = announce(part, order);
            const double factor = took_s > 0.0 ? std::clamp(block_s / took_s, 0.25, 4.0) : 4.0;
            order.batch =
                std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(order.batch) * factor));
        } while (goes_on());
        announce(part, Order{});
    } else {
        obey(part);
    }
    team_.heartbeat().busy();
}

End Meeting::end_of(const Seat& seat, std::size_t bytes) const {
    return {transport_,   window_.get(), *payload_, seat.peers,
            team_.rank(), team_.size(),  bytes,     row_.window_for(bytes, crowd_.fan)};
}

// In a pair the leader of the direction commands and takes the time. In a star the hub commands, since it alone hears
// from everybody, and each leaf takes its own time. In the world rank 0 commands and all take the time.
Meeting::Part Meeting::part_of(const Seat& seat, const End& end, bool leads_pair) const {
    const bool heads = seat.head == team_.rank();
    const std::vector<int> led = heads ? seat.peers : std::vector<int>();
    switch (seat.role) {
        case Seat::Role::pair:
            return {end,
                    leads_pair,
                    leads_pair || info_.bidirectional,
                    {seat.partner()},
                    leads_pair ? team_.rank() : seat.partner(),
                    false};
        case Seat::Role::hub:
        case Seat::Role::leaf:
            return {end, heads == crowd_.hub_leads, !heads, led, seat.head, true};
        case Seat::Role::world: {
            std::vector<int> others(heads ? static_cast<std::size_t>(team_.size()) - 1 : 0);
            std::iota(others.begin(), others.end(), 1);
            return {end, true, true, std::move(others), seat.head, true};
        }
        case Seat::Role::aggressor:
            return {end, info_.bidirectional || !heads, false, led, seat.head, true};
        case Seat::Role::idle:
            break;
    }
    return {end, false, false, {}, -1, false};
}

void Meeting::command(const Part& part, double allotted_s) {
    // Pairs that meet in a barrier before every sample must not stop at different counts.
    if (row_.barrier_each) allotted_s = std::numeric_limits<double>::infinity();
    const double deadline = clock_.now() + allotted_s;
    warm_up(part, clock_.now() + 0.1 * allotted_s);
    Order order;
    order.timed = true;
    order.batch = batch_for(part);
    StopRule stop = row_.stop;
    if (const auto iterations = row_.iterations_for(part.end.bytes)) stop.samples = *iterations / order.batch;
    samples_.clear();
    double sample_s = 0.0;
    order.batches = stop.samples ? std::min(StopRule::fewest, *stop.samples) : StopRule::fewest;
    do {
        sample_s = announce(part, order) / static_cast<double>(order.batches);
        const double left_s = deadline - clock_.now();
        if (stop.finished(samples_, left_s)) break;
        order.batches = stop.next_block(samples_, sample_s, left_s);
    } while (true);
    announce(part, Order{});
}

// The first repetition alone: it may set up a connection, and says how many more fit into the time.
void Meeting::warm_up(const Part& part, double deadline) {
    const int warmup = row_.warmup_for(part.end.bytes);
    if (warmup == 0) return;
    const double first_s = announce(part, {1, 1, false});
    const double affordable = first_s > 0.0 ? std::max((deadline - clock_.now()) / first_s, 0.0) : warmup;
    const auto more = static_cast<std::int64_t>(std::min<double>(warmup - 1, affordable));
    // Operations that add up at the target are checked, and so started anew, one by one.
    if (more > 0) announce(part, row_.validate ? Order{more, 1, false} : Order{1, more, false});
}

std::int64_t Meeting::batch_for(const Part& part) {
    if (row_.validate || kernel_->one_by_one()) return 1;
    const auto iterations = row_.iterations_for(part.end.bytes);
    const std::int64_t batch = row_.batch ? *row_.batch : calibrate(part);
    return iterations ? divisor_up_to(*iterations, batch) : batch;
}

std::int64_t Meeting::calibrate(const Part& part) {
    std::int64_t batch = 1;
    while (batch < longest_batch) {
        const double took_s = announce(part, {1, batch, false});
        if (took_s >= shortest_batch_s_) break;
        const double factor = took_s > 0.0 ? 1.2 * shortest_batch_s_ / took_s : 16.0;
        batch = static_cast<std::int64_t>(std::ceil(static_cast<double>(batch) * std::clamp(factor, 1.5, 16.0)));
    }
    return batch;
}

// Announces the order, waits until all others are about to take part, and carries it out. Returns the time it took.
double Meeting::announce(const Part& part, const Order& order) {
    char ready = 0;
    const std::int64_t repetitions = order.batches * order.batch;
    if (repetitions > 0) kernel_->arm(part.end, part.leads, repetitions);
    for (const int rank : part.commanded) team_.tell(rank, &order, sizeof order);
    for (const int rank : part.commanded) hear(part, rank, ready);
    if (part.crowd)
        for (const int rank : part.commanded) team_.tell(rank, &ready, sizeof ready);
    if (repetitions == 0) return 0.0;
    team_.heartbeat().measuring(round_, part.crowd ? -1 : part.commanded.front());
    const double took_s = run(part, order);
    kernel_->disarm(part.end, part.leads);
    return took_s;
}

void Meeting::obey(const Part& part) {
    char ready = 1;
    for (Order order;;) {
        hear(part, part.commander, order);
        const std::int64_t repetitions = order.batches * order.batch;
        if (repetitions > 0) kernel_->arm(part.end, part.leads, repetitions);
        team_.tell(part.commander, &ready, sizeof ready);
        if (part.crowd) hear(part, part.commander, ready);
        if (repetitions == 0) return;
        team_.heartbeat().measuring(round_, part.crowd ? -1 : part.commander);
        run(part, order);
        kernel_->disarm(part.end, part.leads);
    }
}

// The samples of a block are counted after it, so that next to nothing stands between one and the next.
double Meeting::run(const Part& part, const Order& order) {
    times_.assign(static_cast<std::size_t>(order.batches), 0.0);
    double total_s = 0.0;
    const double first_began = clock_.now();
    for (double& time_s : times_) {
        if (row_.validate) prepare_check(part);
        if (row_.barrier_each) transport_.barrier();
        kernel_->align(part.end);
        const double begin = clock_.now();
        if (part.leads) kernel_->lead(part.end, order.batch);
        if (!part.leads) kernel_->follow(part.end, order.batch);
        time_s = clock_.now() - begin;
        team_.heartbeat().beat();  // a block is sized by its first samples: on CPUs shared since, it may last minutes
        total_s += time_s;
        if (row_.validate) {
            gather(part);  // what is written from afar is there when those who wrote it say so
            inspect(part);
        }
    }
    const double block_s = clock_.now() - first_began;
    const double per_message = 1.0 / (static_cast<double>(order.batch) * kernel_->messages(part.end.window));
    const bool heads = part.commander == team_.rank();
    if (order.timed && (part.takes_time || heads)) {
        for (const double time_s : times_) samples_.add(time_s * per_message);
        loop_s_ += (row_.validate ? total_s : block_s) * per_message;  // filling and checking are no part of the loop
    }
    return total_s;
}

void Meeting::prepare_check(const Part& part) {
    kernel_->fill(part.end, part.leads, next_message_);
    if (window_) window_->settle();
    gather(part);
}

// All members of the group are here.
void Meeting::gather(const Part& part) {
    char ready = 0;
    if (part.commander == team_.rank()) {
        for (const int rank : part.commanded) hear(part, rank, ready);
        for (const int rank : part.commanded) team_.tell(rank, &ready, sizeof ready);
    } else {
        team_.tell(part.commander, &ready, sizeof ready);
        hear(part, part.commander, ready);
    }
}

void Meeting::inspect(const Part& part) {
    if (window_) window_->settle();
    std::vector<Damage> found;
    kernel_->check(part.end, part.leads, next_message_, found);
    next_message_ += part.end.window;
    for (const Damage& damage : found)
        if (damages_.size() < damages_kept) damages_.push_back(damage);
}

}  // namespace fablint

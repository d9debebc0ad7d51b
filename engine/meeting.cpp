#include "meeting.hpp"

#include <algorithm>
#include <cmath>

namespace fablint {

namespace {

constexpr std::int64_t longest_batch = 1'000'000;
constexpr std::size_t damages_kept = 16;  // per rank: enough to see the pattern

std::size_t largest(const std::vector<std::size_t>& sizes) { return *std::max_element(sizes.begin(), sizes.end()); }

// Slots that hold the window of every size. Small sizes have the widest windows, large ones the most bytes.
int slots_for(const RowOptions& row) {
    std::size_t bytes = 0;
    for (const std::size_t size : row.sizes) bytes = std::max(bytes, Payload::footprint(size, row.window_for(size)));
    const std::size_t one = Payload::footprint(largest(row.sizes), 1);
    return static_cast<int>((bytes + one - 1) / one);
}

}  // namespace

Meeting::Meeting(Team& team, const Clock& clock, double clock_overhead_s, const RowOptions& row, Transport& transport,
                 Memory& memory)
    : team_(team),
      clock_(clock),
      shortest_batch_s_(100.0 * clock_overhead_s),
      row_(row),
      kernel_(kernel_named(row.kernel).get()),
      transport_(transport),
      payload_(memory, largest(row.sizes), slots_for(row)) {}

Cell Meeting::meet(int partner, bool first, std::int64_t round) {
    Cell cell;
    const double deadline = clock_.now() + row_.stop.budget_s;
    const std::size_t directions = kernel_.mutual() ? 1 : 2;
    std::size_t left = row_.sizes.size() * directions;
    team_.heartbeat().measuring(round, partner);
    for (const std::size_t bytes : row_.sizes) {
        payload_.set_size(bytes);
        const End end{transport_, payload_, partner, bytes, row_.window_for(bytes)};
        for (std::size_t direction = 0; direction < directions; ++direction, --left) {
            const bool leads = first == (direction == 0);
            samples_.clear();
            next_message_ = 0;
            if (leads) lead(end, (deadline - clock_.now()) / static_cast<double>(left));
            if (!leads) follow(end);
            if (!leads && !kernel_.mutual()) continue;
            cell.sizes.push_back(summary(samples_));
            if (row_.histogram) cell.histograms.push_back(bucket_counts(samples_));
        }
    }
    team_.heartbeat().busy();
    return cell;
}

void Meeting::lead(const End& end, double allotted_s) {
    const double deadline = clock_.now() + allotted_s;
    warm_up(end, clock_.now() + 0.1 * allotted_s);
    Order order;
    order.timed = true;
    order.batch = row_.validate ? 1 : row_.batch ? *row_.batch : calibrate(end);
    samples_.clear();
    double sample_s = 0.0;
    order.batches = row_.stop.samples ? std::min(StopRule::fewest, *row_.stop.samples) : StopRule::fewest;
    do {
        sample_s = command(end, order) / static_cast<double>(order.batches);
        const double left_s = deadline - clock_.now();
        if (row_.stop.finished(samples_, left_s)) break;
        order.batches = row_.stop.next_block(samples_, sample_s, left_s);
    } while (true);
    command(end, Order{});
}

// The first repetition alone: it may set up a connection, and says how many more fit into the time.
void Meeting::warm_up(const End& end, double deadline) {
    if (row_.warmup == 0) return;
    const double first_s = command(end, {1, 1, false});
    const double affordable = first_s > 0.0 ? (deadline - clock_.now()) / first_s : row_.warmup;
    const auto more = std::min<std::int64_t>(row_.warmup - 1, static_cast<std::int64_t>(std::max(affordable, 0.0)));
    if (more > 0) command(end, {1, more, false});
}

std::int64_t Meeting::calibrate(const End& end) {
    std::int64_t batch = 1;
    while (batch < longest_batch) {
        const double took_s = command(end, {1, batch, false});
        if (took_s >= shortest_batch_s_) break;
        const double factor = took_s > 0.0 ? 1.2 * shortest_batch_s_ / took_s : 16.0;
        batch = static_cast<std::int64_t>(std::ceil(static_cast<double>(batch) * std::clamp(factor, 1.5, 16.0)));
    }
    return batch;
}

// Announces the order, waits until the partner is about to take part, and carries it out. Returns the time it took.
double Meeting::command(const End& end, const Order& order) {
    char ready = 0;
    team_.tell(end.peer, &order, sizeof order);
    team_.hear(end.peer, &ready, sizeof ready);
    team_.heartbeat().beat();
    return run(end, order, true);
}

void Meeting::follow(const End& end) {
    const char ready = 1;
    for (Order order;;) {
        team_.hear(end.peer, &order, sizeof order);
        team_.tell(end.peer, &ready, sizeof ready);
        team_.heartbeat().beat();
        if (order.batches == 0) return;
        run(end, order, false);
    }
}

double Meeting::run(const End& end, const Order& order, bool leads) {
    const bool samples = order.timed && (leads || kernel_.mutual());
    const double per_message = 1.0 / (static_cast<double>(order.batch) * kernel_.messages(end.window));
    double total_s = 0.0;
    for (std::int64_t i = 0; i < order.batches; ++i) {
        if (row_.validate) prepare(end, leads);
        const double begin = clock_.now();
        if (leads) kernel_.lead(end, order.batch);
        if (!leads) kernel_.follow(end, order.batch);
        const double took_s = clock_.now() - begin;
        total_s += took_s;
        if (samples) samples_.add(took_s * per_message);
        if (row_.validate) inspect(end, leads);
    }
    return total_s;
}

// Fresh content in every slot on both sides, and nobody starts before both are done.
void Meeting::prepare(const End& end, bool leads) {
    for (int slot = 0; slot < slots(end); ++slot) {
        payload_.fill(slot, team_.rank(), end.peer, next_message_ + slot);
        payload_.poison(slot);
    }
    char ready = 0;
    if (leads) team_.tell(end.peer, &ready, sizeof ready);
    team_.hear(end.peer, &ready, sizeof ready);
    if (!leads) team_.tell(end.peer, &ready, sizeof ready);
}

void Meeting::inspect(const End& end, bool leads) {
    for (int slot = 0; slot < slots(end); ++slot, ++next_message_) {
        if (leads && !kernel_.answered()) continue;
        const auto offset = payload_.damage(slot, end.peer, team_.rank(), next_message_);
        if (offset && damages_.size() < damages_kept)
            damages_.push_back({end.peer, team_.rank(), end.bytes, next_message_, *offset});
    }
}

}  // namespace fablint

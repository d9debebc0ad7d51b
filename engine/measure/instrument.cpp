#include "measure/instrument.hpp"

#include <algorithm>
#include <array>

#include "kernels/kernel.hpp"
#include "memories/memory.hpp"
#include "spec/row.hpp"

namespace fablint {

namespace {

double empty_kernel_time(const Clock& clock) {
    constexpr int repetitions = 100'000;
    const auto memory = make_memory("host");
    const auto transport = transport_named("null").make({});
    constexpr std::size_t bytes = 8;
    Payload payload(*memory, Payload::half_footprint(bytes, 1, Payload::Layout::spaced), Payload::Layout::spaced);
    payload.set_size(bytes);
    const std::unique_ptr<Kernel> kernel = make_latency(RowOptions{});
    const std::vector<int> peers = {0};
    const Endpoint end{*transport, nullptr, payload, peers, 0, 1, bytes, 1};
    const double begin = clock.now();
    kernel->lead(end, repetitions);
    return (clock.now() - begin) / (repetitions * kernel->messages(1));
}

double barrier_skew(RankGroup& rank_group) {
    std::array<double, 11> spreads{};
    for (double& spread : spreads) {
        rank_group.barrier();
        const double left = rank_group.now();
        const double latest = rank_group.maximum(left);
        spread = latest - rank_group.minimum(left);
    }
    std::nth_element(spreads.begin(), spreads.begin() + spreads.size() / 2, spreads.end());
    return spreads[spreads.size() / 2];
}

}  // namespace

Instrument examine_instrument(RankGroup& rank_group, const Clock& clock) {
    Instrument instrument;
    // All ranks at once, although ranks of a host disturb each other: the worst rank is reported.
    instrument.clock = examine(clock);
    instrument.clock.resolution_s = rank_group.maximum(instrument.clock.resolution_s);
    instrument.clock.overhead_s = rank_group.maximum(instrument.clock.overhead_s);
    instrument.empty_kernel_s = rank_group.maximum(empty_kernel_time(clock));
    instrument.barrier_skew_s = barrier_skew(rank_group);
    return instrument;
}

}  // namespace fablint

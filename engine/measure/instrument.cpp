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
    const auto memory = memory_named("host").make();
    const auto transport = transport_named("null").make();
    constexpr std::size_t bytes = 8;
    Payload payload(*memory, Payload::half_footprint(bytes, 1, Payload::Layout::spaced), Payload::Layout::spaced);
    payload.set_size(bytes);
    const std::unique_ptr<Kernel> kernel = make_latency(RowOptions{});
    const std::vector<int> peers = {0};
    const End end{*transport, nullptr, payload, peers, 0, 1, bytes, 1};
    const double begin = clock.now();
    kernel->lead(end, repetitions);
    return (clock.now() - begin) / (repetitions * kernel->messages(1));
}

double rendezvous_skew(Team& team) {
    std::array<double, 11> spreads{};
    for (double& spread : spreads) {
        team.rendezvous();
        const double left = team.now();
        const double latest = team.maximum(left);
        spread = latest - team.minimum(left);
    }
    std::nth_element(spreads.begin(), spreads.begin() + spreads.size() / 2, spreads.end());
    return spreads[spreads.size() / 2];
}

}  // namespace

Json Instrument::json(const Team& team, bool oversubscribed) const {
    return JsonObject()
        .add("clock", wall_clock().name())
        .add("resolution_s", clock.resolution_s)
        .add("overhead_s", clock.overhead_s)
        .add("empty_kernel_s", empty_kernel_s)
        .add("barrier_skew_s", barrier_skew_s)
        .add("clock_sync_s", team.clock_uncertainty())
        .add("oversubscribed", oversubscribed)
        .json();
}

Instrument examine_instrument(Team& team, const Clock& clock) {
    Instrument instrument;
    // One rank after another would be cleaner on a shared host, but the worst rank is what counts.
    instrument.clock = examine(clock);
    instrument.clock.resolution_s = team.maximum(instrument.clock.resolution_s);
    instrument.clock.overhead_s = team.maximum(instrument.clock.overhead_s);
    instrument.empty_kernel_s = team.maximum(empty_kernel_time(clock));
    instrument.barrier_skew_s = rendezvous_skew(team);
    return instrument;
}

}  // namespace fablint

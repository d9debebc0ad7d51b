#include "kernels/kernel.hpp"

#include <algorithm>

#include "base/table.hpp"

namespace fablint {

namespace {

constexpr auto lat = Quantity::latency;
constexpr auto bw = Quantity::bandwidth;
constexpr const char* all_sizes = "1:4M";
constexpr const char* collective_sizes = "1:1M";

}  // namespace

const std::vector<KernelInfo>& kernels() {
    using S = Sender;
    using Z = Sizes;
    using U = Uses;
    static const std::vector<KernelInfo> table = {
        // name, what, OSU's title, quantity, sender, windowed, mutual, sizes, default sizes, uses, make
        {"latency", "half a round trip", "OSU MPI Latency Test", lat, S::both, false, false, Z::from_0, all_sizes,
         U::messages, make_latency},
        {"bandwidth", "one-way stream of windows, acknowledged", "OSU MPI Bandwidth Test", bw, S::src, true, false,
         Z::from_1, all_sizes, U::messages, make_bandwidth},
        {"bibandwidth", "streams in both directions at once", "OSU MPI Bi-Directional Bandwidth Test", bw, S::both,
         true, true, Z::from_1, all_sizes, U::messages, make_bibandwidth},
        {"exchange", "both ends send one message at once", "OSU MPI Exchange Latency Test", lat, S::both, false, true,
         Z::from_0, all_sizes, U::messages, make_exchange},
        {"latency_persistent", "latency with persistent requests", "OSU MPI Latency Persistent Test", lat, S::both,
         false, false, Z::from_0, all_sizes, U::messages, make_latency_persistent},
        {"bandwidth_persistent", "bandwidth with persistent requests", "OSU MPI Bandwidth Persistent Test", bw, S::src,
         true, false, Z::from_1, all_sizes, U::messages, make_bandwidth_persistent},
        {"bibandwidth_persistent", "bibandwidth with persistent requests",
         "OSU MPI Bi-Directional Bandwidth Persistent Test", bw, S::both, true, true, Z::from_1, all_sizes, U::messages,
         make_bibandwidth_persistent},
        {"latency_mt", "latency with several threads at each end", "OSU MPI Multi-threaded Latency Test", lat, S::both,
         false, false, Z::from_0, all_sizes, U::messages, make_latency_mt},
        {"latency_mp", "latency beside forked processes", "OSU MPI Multi-process Latency Test", lat, S::both, false,
         false, Z::from_0, all_sizes, U::messages, make_latency_mp},
        {"put_latency", "one put until it is at the target", "OSU MPI_Put Latency Test", lat, S::src, false, false,
         Z::from_1, all_sizes, U::one_sided, make_put_latency},
        {"put_bandwidth", "a window of puts", "OSU MPI_Put Bandwidth Test", bw, S::src, true, false, Z::from_1,
         all_sizes, U::one_sided, make_put_bandwidth},
        {"put_bibandwidth", "a window of puts in each direction at once", "OSU MPI_Put Bi-directional Bandwidth Test",
         bw, S::both, true, true, Z::from_1, all_sizes, U::one_sided, make_put_bibandwidth},
        {"get_latency", "one get", "OSU MPI_Get latency Test", lat, S::dst, false, false, Z::from_1, all_sizes,
         U::one_sided, make_get_latency},
        {"get_bandwidth", "a window of gets", "OSU MPI_Get Bandwidth Test", bw, S::dst, true, false, Z::from_1,
         all_sizes, U::one_sided, make_get_bandwidth},
        {"accumulate", "one accumulate", "OSU MPI_Accumulate latency Test", lat, S::src, false, false, Z::from_1,
         all_sizes, U::one_sided, make_accumulate},
        {"get_accumulate", "one get-accumulate", "OSU MPI_Get_accumulate latency Test", lat, S::both, false, false,
         Z::from_1, all_sizes, U::one_sided, make_get_accumulate},
        {"cas", "one compare-and-swap", "OSU MPI_Compare_and_swap latency Test", lat, S::both, false, false, Z::only_8,
         "8", U::one_sided, make_cas},
        {"fop", "one fetch-and-add", "OSU MPI_Fetch_and_op latency Test", lat, S::both, false, false, Z::only_8, "8",
         U::one_sided, make_fop},
        {"rpc_put", "requests that the server answers with puts", "fablint RPC Put Test", bw, S::dst, true, false,
         Z::from_1, all_sizes, U::requests, make_rpc_put},
        {"rpc_get", "requests that the server answers with gets", "fablint RPC Get Test", bw, S::src, true, false,
         Z::from_1, all_sizes, U::requests, make_rpc_get},
        {"barrier", "MPI_Barrier", "OSU MPI Barrier Latency Test", lat, S::none, false, true, Z::only_0, "0",
         U::collectives, make_barrier},
        {"bcast", "MPI_Bcast from rank 0", "OSU MPI Broadcast Latency Test", lat, S::both, false, true, Z::from_1,
         collective_sizes, U::collectives, make_bcast},
        {"allreduce", "MPI_Allreduce, sum of floats", "OSU MPI Allreduce Latency Test", lat, S::both, false, true,
         Z::floats, "4:1M", U::collectives, make_allreduce},
        {"allgather", "MPI_Allgather", "OSU MPI Allgather Latency Test", lat, S::both, false, true, Z::from_1,
         collective_sizes, U::collectives, make_allgather},
        {"alltoall", "MPI_Alltoall", "OSU MPI All-to-All Personalized Exchange Latency Test", lat, S::both, false, true,
         Z::from_1, collective_sizes, U::collectives, make_alltoall},
    };
    return table;
}

const KernelInfo& kernel_named(const std::string& name) { return row_named(kernels(), name, "kernel"); }

const char* word(Quantity quantity) { return quantity == Quantity::latency ? "latency" : "bandwidth"; }

const char* word(Sender sender) {
    switch (sender) {
        case Sender::src:
            return "src";
        case Sender::dst:
            return "dst";
        case Sender::both:
            return "both";
        case Sender::none:
            break;
    }
    return "none";
}

bool KernelInfo::runs_on(Shape shape, const std::string& pattern) const {
    if (shape == Shape::world || uses == Uses::collectives) return shape == Shape::world && uses == Uses::collectives;
    if (shape == Shape::pairs) return true;
    const bool stream = std::string(name) == "bandwidth";
    return stream || (uses == Uses::requests && pattern == "clients-servers");
}

bool KernelInfo::takes(std::size_t bytes) const {
    switch (sizes) {
        case Sizes::from_0:
            return true;
        case Sizes::from_1:
            return bytes > 0;
        case Sizes::only_0:
            return bytes == 0;
        case Sizes::only_8:
            return bytes == 8;
        case Sizes::floats:
            return bytes > 0 && bytes % sizeof(float) == 0;
    }
    return false;
}

const char* KernelInfo::sizes_hint() const {
    switch (sizes) {
        case Sizes::from_0:
        case Sizes::from_1:
            break;
        case Sizes::only_0:
            return "leave --sizes out";
        case Sizes::only_8:
            return "8 is the only one";
        case Sizes::floats:
            return "choose multiples of 4";
    }
    return "start at 1";
}

void Kernel::fill(const End& end, bool leads, std::int64_t first) {
    for (std::size_t peer = 0; peer < end.peers.size(); ++peer) {
        for (int slot = 0; slot < end.window; ++slot) {
            end.payload.fill(end.slot_of(peer, slot), end.rank, end.peers[peer], first + slot);
            end.payload.poison(end.slot_of(peer, slot), leads);
        }
    }
}

void Kernel::check(const End& end, bool leads, std::int64_t first, std::vector<Damage>& damages) {
    const std::optional<Content> content = leads ? at_leader() : at_follower();
    if (!content) return;
    for (std::size_t peer = 0; peer < end.peers.size(); ++peer) {
        for (int slot = 0; slot < end.window; ++slot) {
            const int src = end.peers[peer];
            const auto offset = end.payload.damage(end.slot_of(peer, slot), src, end.rank, first + slot, *content);
            if (offset) damages.push_back({src, end.rank, end.bytes, first + slot, *offset});
        }
    }
}

}  // namespace fablint

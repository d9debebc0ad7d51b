#include "kernels/kernel.hpp"

#include <algorithm>

#include "base/table.hpp"

namespace fablint {

const std::vector<KernelInfo>& kernels() {
    using namespace capability;
    using namespace shape;
    static constexpr auto latency = Quantity::latency;
    static constexpr auto bandwidth = Quantity::bandwidth;
    static constexpr auto src = Sender::src;
    static constexpr auto dst = Sender::dst;
    static constexpr auto both = Sender::both;
    static constexpr auto none = Sender::none;
    static constexpr auto from_0 = Sizes::from_0;
    static constexpr auto from_1 = Sizes::from_1;
    static constexpr auto only_0 = Sizes::only_0;
    static constexpr auto only_8 = Sizes::only_8;
    static constexpr auto floats = Sizes::floats;
    static const std::vector<KernelInfo> table = {
#define KERNEL(identifier, ...) ROW_OF_TABLE(KernelInfo, name = #identifier, make = make_##identifier, __VA_ARGS__),
#include "registry/kernels.inc"
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

bool KernelInfo::accepts(const std::string& option) const { return has_word(options, option); }

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

KernelTraits round_trip_traits() {
    KernelTraits traits;
    traits.messages = 2;
    traits.at_leader = Content::message;
    return traits;
}

KernelTraits both_receive_traits() {
    KernelTraits traits;
    traits.at_leader = Content::message;
    return traits;
}

void Kernel::fill(const Endpoint& end, bool leads, std::int64_t first) {
    for (std::size_t peer = 0; peer < end.peers.size(); ++peer) {
        for (int slot = 0; slot < end.window; ++slot) {
            end.payload.fill(end.slot_of(peer, slot), end.rank, end.peers[peer], first + slot);
            end.payload.poison(end.slot_of(peer, slot), leads);
        }
    }
}

void Kernel::check(const Endpoint& end, bool leads, std::int64_t first, std::vector<Damage>& damages) {
    const std::optional<Content> content = leads ? traits_.at_leader : traits_.at_follower;
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

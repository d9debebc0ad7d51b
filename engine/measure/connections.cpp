#include "measure/connections.hpp"

namespace fablint {

Connections::Connections(RankGroup& rank_group, Transport& transport) : transport_(transport) {
    const std::string own = transport.address();
    if (rank_group.maximum(own.empty() ? 0.0 : 1.0) == 0.0) return;
    std::string all;  // each address with its length before it
    for (const std::string& address : rank_group.gather(own)) all += std::to_string(address.size()) + ' ' + address;
    all = rank_group.broadcast(all);
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t begin = all.find(' ', at) + 1;
        const std::size_t length = std::stoul(all.substr(at, begin - at - 1));
        addresses_.push_back(all.substr(begin, length));
        at = begin + length;
    }
    connected_.resize(addresses_.size(), false);
    transport.join(addresses_);
}

void Connections::connect(const std::vector<int>& peers) {
    if (addresses_.empty()) return;
    for (const int peer : peers) {
        const auto index = static_cast<std::size_t>(peer);
        if (!connected_[index]) transport_.connect(peer, addresses_[index]);
        connected_[index] = true;
    }
}

}  // namespace fablint

#include "measure/connections.hpp"

namespace fablint {

namespace {

constexpr char connected_word = 0;

}  // namespace

Connections::Connections(RankGroup& rank_group, Connectable& connectable)
    : rank_group_(rank_group), connectable_(connectable) {
    const std::string own = connectable.address();
    if (rank_group.maximum(own.empty() ? 0.0 : 1.0) == 0.0) return;
    std::string all;  // each address with its length before it
    const GatheredTexts addresses = rank_group.gather(own);
    for (std::size_t rank = 0; rank < addresses.size(); ++rank)
        all += std::to_string(addresses[rank].size()) + ' ' + addresses[rank];
    all = rank_group.broadcast(all);
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t begin = all.find(' ', at) + 1;
        const std::size_t length = std::stoul(all.substr(at, begin - at - 1));
        addresses_.push_back(all.substr(begin, length));
        at = begin + length;
    }
    connected_.resize(addresses_.size(), false);
    connectable.join(addresses_);
}

void Connections::connect(const std::vector<int>& peers, std::int64_t round) {
    if (addresses_.empty()) return;
    Heartbeat& heartbeat = rank_group_.heartbeat();
    // A peer with further peers may be late because of one of those.
    const auto waits_for = [&](int peer) { heartbeat.measuring(round, peers.size() > 1 ? -1 : peer); };
    std::vector<int> open;
    for (const int peer : peers) {
        const auto index = static_cast<std::size_t>(peer);
        if (connected_[index]) continue;
        connected_[index] = true;
        const std::string own = connectable_.open_connection(peer);
        if (own.empty()) {
            connect_to(peer, own, round);
        } else {
            waits_for(peer);  // the first message between two ranks waits for their connection
            rank_group_.send_control_text(peer, own);
            open.push_back(peer);
        }
    }
    for (const int peer : open) {
        waits_for(peer);
        connect_to(peer, rank_group_.receive_control_text(peer), round);
        rank_group_.send_control(peer, &connected_word, sizeof connected_word);
    }
    for (const int peer : open) {
        char word = 0;
        waits_for(peer);
        rank_group_.receive_control(peer, &word, sizeof word);
    }
    heartbeat.busy();
}

void Connections::connect_to(int peer, const std::string& opened, std::int64_t round) {
    rank_group_.heartbeat().measuring(round, peer);
    connectable_.connect(peer, addresses_[static_cast<std::size_t>(peer)] + opened);
}

}  // namespace fablint

// Patterns in which one rank serves many: fan-in, fan-out, clients-servers.
#include <algorithm>
#include <map>

#include "base/errors.hpp"
#include "patterns/pattern.hpp"

namespace fablint {

namespace {

Role leaf_of(int hub, int slot) { return {Role::Kind::leaf, {hub}, slot, hub}; }

Role hub_of(std::vector<int> leaves, int rank, int slot) {
    if (leaves.empty()) return {};
    return {Role::Kind::hub, std::move(leaves), slot, rank};
}

// All ranks of the other hosts with the rank of the same number on the first host, as osu_bw_fan_in and osu_bw_fan_out.
// On one host the first rank is the hub. In contrast to OSU, hosts may have different numbers of ranks: the numbers
// wrap.
class Fan : public Pattern {
  public:
    explicit Fan(const std::vector<int>& rank_host) {
        const int hosts = 1 + *std::max_element(rank_host.begin(), rank_host.end());
        const auto ranks = static_cast<int>(rank_host.size());
        if (hosts == 1) {
            hubs_ = {0};
        } else {
            for (int rank = 0; rank < ranks; ++rank)
                if (rank_host[static_cast<std::size_t>(rank)] == 0) hubs_.push_back(rank);
        }
        slot_.resize(rank_host.size(), 0);
        std::map<int, int> seen;  // ranks per host so far
        std::vector<int> leaves(hubs_.size(), 0);
        for (int rank = 0; rank < ranks; ++rank) {
            const int host = rank_host[static_cast<std::size_t>(rank)];
            const int number = seen[host]++;
            int& slot = slot_[static_cast<std::size_t>(rank)];
            slot = number % static_cast<int>(hubs_.size());
            if (!is_hub(rank)) ++leaves[static_cast<std::size_t>(slot)];
        }
        leaves_ = ranks - static_cast<int>(hubs_.size());
        fan_ = *std::max_element(leaves.begin(), leaves.end());
    }
    int slots(std::int64_t) const override { return static_cast<int>(hubs_.size()); }
    int cells(std::int64_t) const override { return leaves_; }
    int fan() const override { return fan_; }
    Role role(std::int64_t, int rank) const override {
        const int slot = slot_[static_cast<std::size_t>(rank)];
        if (!is_hub(rank)) return leaf_of(hubs_[static_cast<std::size_t>(slot)], slot);
        std::vector<int> leaves;
        for (int other = 0; other < static_cast<int>(slot_.size()); ++other)
            if (slot_[static_cast<std::size_t>(other)] == slot && !is_hub(other)) leaves.push_back(other);
        return hub_of(std::move(leaves), rank, slot);
    }

  private:
    bool is_hub(int rank) const { return std::binary_search(hubs_.begin(), hubs_.end(), rank); }

    std::vector<int> hubs_;
    std::vector<int> slot_;  // by rank
    int leaves_ = 0;
    int fan_ = 0;
};

// Ranks 0 .. servers-1 are the servers. In round k, client i has server (i + k) mod servers: after all rounds every
// client has used every server, and in each round the clients are distributed evenly.
class ClientsServers : public Pattern {
  public:
    ClientsServers(int ranks, int servers) : servers_(servers), clients_(ranks - servers) {}
    std::int64_t rounds() const override { return servers_; }
    int slots(std::int64_t) const override { return servers_; }
    int cells(std::int64_t) const override { return clients_; }
    int fan() const override { return (clients_ + servers_ - 1) / servers_; }
    Role role(std::int64_t round, int rank) const override {
        const auto turn = static_cast<int>(round);
        if (rank >= servers_) {
            const int server = (rank - servers_ + turn) % servers_;
            return leaf_of(server, server);
        }
        std::vector<int> clients;
        for (int client = (rank - turn + servers_) % servers_; client < clients_; client += servers_)
            clients.push_back(servers_ + client);
        return hub_of(std::move(clients), rank, rank);
    }

  private:
    int servers_, clients_;
};

}  // namespace

std::unique_ptr<Pattern> make_fan_in(const PatternRequest& request) { return std::make_unique<Fan>(request.rank_host); }

std::unique_ptr<Pattern> make_fan_out(const PatternRequest& request) {
    return std::make_unique<Fan>(request.rank_host);
}

std::unique_ptr<Pattern> make_clients_servers(const PatternRequest& request) {
    if (request.servers >= request.ranks)
        throw usage_error("--servers " + std::to_string(request.servers) + " leaves no client: this run has " +
                          std::to_string(request.ranks) + " ranks");
    return std::make_unique<ClientsServers>(request.ranks, request.servers);
}

}  // namespace fablint

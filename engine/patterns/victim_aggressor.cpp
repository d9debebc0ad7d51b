#include <algorithm>

#include "base/errors.hpp"
#include "base/permutation.hpp"
#include "patterns/pattern.hpp"

namespace fablint {

namespace {

// The same pairs twice: isolated, then while all other ranks generate traffic, as in GPCNeT (Chunduri et al., SC'19).
// Here every pair has its own figures, and the recorded seed selects the ranks.
class VictimAggressor : public Pattern, BackgroundTraffic {
  public:
    VictimAggressor(int ranks, int victims, bool incast, std::uint64_t seed)
        : ranks_(ranks), victims_(victims), incast_(incast), places_(static_cast<std::uint64_t>(ranks), mix(seed, 4)) {}
    std::int64_t rounds() const override { return 2; }
    int slots(std::int64_t) const override { return victims_; }
    const BackgroundTraffic* background() const override { return this; }
    bool runs_in(std::int64_t round) const override { return round == 1; }
    Role role(std::int64_t round, int rank) const override {
        const int place = static_cast<int>(places_.image(static_cast<std::uint64_t>(rank)));
        if (place < 2 * victims_) return {Role::Kind::pair, {rank_at(place ^ 1)}, place / 2, -1};
        return runs_in(round) ? aggressor(place) : Role{};
    }
    std::vector<int> aggressors() const override { return ranks_at(2 * victims_, ranks_); }
    std::vector<int> victims() const override { return ranks_at(0, 2 * victims_); }

  private:
    // In an incast the first aggressor receives from all others; otherwise each has all others as its peers.
    Role aggressor(int place) const {
        const int head = 2 * victims_;
        Role role{Role::Kind::aggressor, {}, -1, rank_at(head)};
        for (int other = head; other < ranks_; ++other)
            if (other != place && (!incast_ || place == head || other == head)) role.peers.push_back(rank_at(other));
        return role;
    }

    std::vector<int> ranks_at(int begin, int end) const {
        std::vector<int> ranks;
        for (int place = begin; place < end; ++place) ranks.push_back(rank_at(place));
        return ranks;
    }

    int rank_at(int place) const { return static_cast<int>(places_.preimage(static_cast<std::uint64_t>(place))); }

    int ranks_, victims_;
    bool incast_;
    Permutation places_;
};

}  // namespace

std::unique_ptr<Pattern> make_victim_aggressor(const PatternRequest& request) {
    const int victims = request.victims > 0 ? request.victims : std::max(1, request.ranks / 10);
    constexpr int fewest_aggressors = 2;
    if (2 * victims + fewest_aggressors > request.ranks)
        throw usage_error("victim-aggressor with " + std::to_string(victims) + " victim pairs needs at least " +
                          std::to_string(2 * victims + fewest_aggressors) + " ranks, this run has " +
                          std::to_string(request.ranks));
    return std::make_unique<VictimAggressor>(request.ranks, victims, request.incast, request.seed);
}

}  // namespace fablint

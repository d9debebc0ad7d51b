// Patterns whose rounds are matchings given by a formula.
#include <algorithm>

#include "base/permutation.hpp"
#include "patterns/pattern.hpp"

namespace fablint {

namespace {

int narrow(std::uint64_t x) { return static_cast<int>(x); }

Role paired(int partner, int slot) { return {Role::Kind::pair, {partner}, slot, -1}; }

// Ranks 0 and 1.
class Pair : public Pattern {
  public:
    int slots(std::int64_t) const override { return 1; }
    Role role(std::int64_t, int rank) const override { return rank < 2 ? paired(1 - rank, 0) : Role{}; }
};

// Rank i with i + n/2, as in OSU. With an odd number of ranks the last one is idle.
class Pairs : public Pattern {
  public:
    explicit Pairs(int ranks) : half_(ranks / 2) {}
    int slots(std::int64_t) const override { return half_; }
    Role role(std::int64_t, int rank) const override {
        if (rank < half_) return paired(rank + half_, rank);
        if (rank < 2 * half_) return paired(rank - half_, rank - half_);
        return {};
    }

  private:
    int half_;
};

// Every pair once: the 1-factorisation of the complete graph by the round-robin method (Kirkman 1847). The ranks are
// relabelled and the rounds reordered by the seed, so that neither neighbours nor time are confounded with rank
// numbers. With n odd every round leaves one rank idle.
class AllPairs : public Pattern {
  public:
    AllPairs(int ranks, std::uint64_t seed)
        : ranks_(ranks),
          cycle_(ranks % 2 == 0 ? ranks - 1 : ranks),
          labels_(static_cast<std::uint64_t>(ranks), mix(seed, 1)),
          order_(static_cast<std::uint64_t>(cycle_), mix(seed, 2)) {}
    std::int64_t rounds() const override { return cycle_; }
    int slots(std::int64_t) const override { return ranks_ / 2; }
    Role role(std::int64_t round, int rank) const override {
        const std::int64_t turn = narrow(order_.image(static_cast<std::uint64_t>(round)));
        const std::int64_t label = narrow(labels_.image(static_cast<std::uint64_t>(rank)));
        const bool has_hub = ranks_ % 2 == 0;  // the label outside the cycle
        if (has_hub && label == cycle_) return paired(rank_of(turn), 0);
        if (label == turn) return has_hub ? paired(rank_of(cycle_), 0) : Role{};
        // On the cycle, labels x and y meet in the round r with x + y = 2 r.
        const std::int64_t distance = ((label - turn) % cycle_ + cycle_) % cycle_;
        const std::int64_t other = ((2 * turn - label) % cycle_ + cycle_) % cycle_;
        const std::int64_t slot = std::min(distance, cycle_ - distance) - (has_hub ? 0 : 1);
        return paired(rank_of(other), static_cast<int>(slot));
    }

  private:
    int rank_of(std::int64_t label) const { return narrow(labels_.preimage(static_cast<std::uint64_t>(label))); }

    int ranks_;
    std::int64_t cycle_;
    Permutation labels_;
    Permutation order_;
};

// Each rank of the first half with each of the second half. With n odd the second half is one larger and every round
// leaves one of its ranks idle.
class Bisection : public Pattern {
  public:
    Bisection(int ranks, std::uint64_t seed)
        : low_(ranks / 2), high_(ranks - ranks / 2), order_(static_cast<std::uint64_t>(high_), mix(seed, 2)) {}
    std::int64_t rounds() const override { return high_; }
    int slots(std::int64_t) const override { return low_; }
    Role role(std::int64_t round, int rank) const override {
        const int shift = narrow(order_.image(static_cast<std::uint64_t>(round)));
        if (rank < low_) return paired(low_ + (rank + shift) % high_, rank);
        const int partner = ((rank - low_ - shift) % high_ + high_) % high_;
        return partner < low_ ? paired(partner, partner) : Role{};
    }

  private:
    int low_, high_;
    Permutation order_;
};

// Seeded random perfect matchings: neighbours in a random order of the ranks.
class RandomMatchings : public Pattern {
  public:
    RandomMatchings(int ranks, std::uint64_t seed, std::int64_t matchings)
        : ranks_(ranks), seed_(seed), matchings_(matchings) {}
    std::int64_t rounds() const override { return matchings_; }
    int slots(std::int64_t) const override { return ranks_ / 2; }
    Role role(std::int64_t round, int rank) const override {
        const Permutation places(static_cast<std::uint64_t>(ranks_), mix(seed_, static_cast<std::uint64_t>(round) + 3));
        const std::uint64_t place = places.image(static_cast<std::uint64_t>(rank));
        const std::uint64_t neighbour = place ^ 1U;
        if (neighbour >= static_cast<std::uint64_t>(ranks_)) return {};
        return paired(narrow(places.preimage(neighbour)), narrow(place / 2));
    }

  private:
    int ranks_;
    std::uint64_t seed_;
    std::int64_t matchings_;
};

}  // namespace

std::unique_ptr<Pattern> make_pair(const PatternRequest&) { return std::make_unique<Pair>(); }

std::unique_ptr<Pattern> make_pairs(const PatternRequest& request) { return std::make_unique<Pairs>(request.ranks); }

std::unique_ptr<Pattern> make_all_pairs(const PatternRequest& request) {
    return std::make_unique<AllPairs>(request.ranks, request.seed);
}

std::unique_ptr<Pattern> make_bisection(const PatternRequest& request) {
    return std::make_unique<Bisection>(request.ranks, request.seed);
}

std::unique_ptr<Pattern> make_random(const PatternRequest& request) {
    return std::make_unique<RandomMatchings>(request.ranks, request.seed, request.matchings);
}

}  // namespace fablint

#include "patterns/pattern.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "base/errors.hpp"
#include "base/permutation.hpp"
#include "base/table.hpp"

namespace fablint {

namespace {

int narrow(std::uint64_t x) { return static_cast<int>(x); }

Seat paired(int partner, int slot) { return {Seat::Role::pair, {partner}, slot, -1}; }

// Ranks 0 and 1.
class Pair : public Pattern {
  public:
    int slots(std::int64_t) const override { return 1; }
    Seat seat(std::int64_t, int rank) const override { return rank < 2 ? paired(1 - rank, 0) : Seat{}; }
};

// Rank i with i + n/2, as in OSU. With an odd number of ranks the last one is idle.
class Pairs : public Pattern {
  public:
    explicit Pairs(int ranks) : half_(ranks / 2) {}
    int slots(std::int64_t) const override { return half_; }
    Seat seat(std::int64_t, int rank) const override {
        if (rank < half_) return paired(rank + half_, rank);
        if (rank < 2 * half_) return paired(rank - half_, rank - half_);
        return {};
    }

  private:
    int half_;
};

// Every pair once: the 1-factorisation of the complete graph by the circle method (Kirkman 1847). The ranks are
// relabelled and the rounds reordered by the seed, so that neither neighbours nor time are confounded with rank
// numbers. With n odd every round leaves one rank idle.
class AllPairs : public Pattern {
  public:
    AllPairs(int ranks, std::uint64_t seed)
        : ranks_(ranks),
          circle_(ranks % 2 == 0 ? ranks - 1 : ranks),
          labels_(static_cast<std::uint64_t>(ranks), mix(seed, 1)),
          order_(static_cast<std::uint64_t>(circle_), mix(seed, 2)) {}
    Layout layout() const override { return Layout::matrix; }
    std::int64_t rounds() const override { return circle_; }
    int slots(std::int64_t) const override { return ranks_ / 2; }
    Seat seat(std::int64_t round, int rank) const override {
        const std::int64_t turn = narrow(order_.image(static_cast<std::uint64_t>(round)));
        const std::int64_t label = narrow(labels_.image(static_cast<std::uint64_t>(rank)));
        const bool has_hub = ranks_ % 2 == 0;  // the label outside the circle
        if (has_hub && label == circle_) return paired(rank_of(turn), 0);
        if (label == turn) return has_hub ? paired(rank_of(circle_), 0) : Seat{};
        // On the circle, labels x and y meet in the round r with x + y = 2 r.
        const std::int64_t distance = ((label - turn) % circle_ + circle_) % circle_;
        const std::int64_t other = ((2 * turn - label) % circle_ + circle_) % circle_;
        const std::int64_t slot = std::min(distance, circle_ - distance) - (has_hub ? 0 : 1);
        return paired(rank_of(other), static_cast<int>(slot));
    }

  private:
    int rank_of(std::int64_t label) const { return narrow(labels_.preimage(static_cast<std::uint64_t>(label))); }

    int ranks_;
    std::int64_t circle_;
    Permutation labels_;
    Permutation order_;
};

// Each rank of the first half with each of the second half. With n odd the second half is one larger and every round
// leaves one of its ranks idle.
class Bisection : public Pattern {
  public:
    Bisection(int ranks, std::uint64_t seed)
        : low_(ranks / 2), high_(ranks - ranks / 2), order_(static_cast<std::uint64_t>(high_), mix(seed, 2)) {}
    Layout layout() const override { return Layout::matrix; }
    std::int64_t rounds() const override { return high_; }
    int slots(std::int64_t) const override { return low_; }
    Seat seat(std::int64_t round, int rank) const override {
        const int shift = narrow(order_.image(static_cast<std::uint64_t>(round)));
        if (rank < low_) return paired(low_ + (rank + shift) % high_, rank);
        const int partner = ((rank - low_ - shift) % high_ + high_) % high_;
        return partner < low_ ? paired(partner, partner) : Seat{};
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
    Seat seat(std::int64_t round, int rank) const override {
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

// Rounds that a file spells out: one round per line, pairs as 0-1, separated by blanks or commas.
class ExplicitRounds : public Pattern {
  public:
    ExplicitRounds(const std::string& text, const std::string& name, int ranks) : ranks_(ranks), name_(name) {
        std::istringstream lines(text);
        int number = 0;
        for (std::string line; std::getline(lines, line);) parse_line(line.substr(0, line.find('#')), ++number);
        if (rounds_.empty())
            throw usage_error(name + ": no round in the file: write one round per line, such as 0-1 2-3");
    }
    std::int64_t rounds() const override { return static_cast<std::int64_t>(rounds_.size()); }
    int slots(std::int64_t round) const override { return static_cast<int>(at(round).size() / 2); }
    Seat seat(std::int64_t round, int rank) const override {
        const auto found = std::lower_bound(at(round).begin(), at(round).end(), rank, before);
        return found == at(round).end() || found->rank != rank ? Seat{} : paired(found->partner, found->slot);
    }

  private:
    struct Member {
        int rank, partner, slot;
    };
    using Round = std::vector<Member>;  // by rank: every rank holds the rounds of all

    static bool before(const Member& member, int rank) { return member.rank < rank; }

    const Round& at(std::int64_t round) const { return rounds_[static_cast<std::size_t>(round)]; }

    void parse_line(std::string line, int number) {
        std::replace(line.begin(), line.end(), ',', ' ');
        std::istringstream words(line);
        Round round;
        const std::string where = name_ + ":" + std::to_string(number) + ": ";
        for (std::string word; words >> word;) add_pair(round, word, where);
        if (round.empty()) return;
        std::sort(round.begin(), round.end(), [](const Member& a, const Member& b) { return a.rank < b.rank; });
        for (std::size_t i = 1; i < round.size(); ++i)
            if (round[i - 1].rank == round[i].rank)
                throw usage_error(where + "rank " + std::to_string(round[i].rank) +
                                  " appears twice: a rank has one partner per round");
        round.shrink_to_fit();
        rounds_.push_back(std::move(round));
    }

    void add_pair(Round& round, const std::string& word, const std::string& where) const {
        char* end = nullptr;
        const long a = std::strtol(word.c_str(), &end, 10);
        const bool dash = end != word.c_str() && *end == '-' && std::isdigit(static_cast<unsigned char>(end[1])) != 0;
        const long b = dash ? std::strtol(end + 1, &end, 10) : -1;
        if (!dash || *end != '\0' || a < 0) throw usage_error(where + "'" + word + "' is no pair: write it as 0-1");
        for (const long rank : {a, b})
            if (rank >= ranks_)
                throw usage_error(where + "rank " + std::to_string(rank) + " does not exist: this run has " +
                                  std::to_string(ranks_) + " ranks");
        const int slot = static_cast<int>(round.size() / 2);
        round.push_back({static_cast<int>(a), static_cast<int>(b), slot});
        round.push_back({static_cast<int>(b), static_cast<int>(a), slot});
    }

    int ranks_;
    std::string name_;
    std::vector<Round> rounds_;
};

std::unique_ptr<Pattern> make_pair(const PatternRequest&) { return std::make_unique<Pair>(); }

std::unique_ptr<Pattern> make_pairs(const PatternRequest& request) { return std::make_unique<Pairs>(request.ranks); }

template <typename Kind>
std::unique_ptr<Pattern> of_ranks_and_seed(const PatternRequest& request) {
    return std::make_unique<Kind>(request.ranks, request.seed);
}

std::unique_ptr<Pattern> make_random(const PatternRequest& request) {
    return std::make_unique<RandomMatchings>(request.ranks, request.seed, request.matchings);
}

std::unique_ptr<Pattern> make_rounds(const PatternRequest& request) {
    return std::make_unique<ExplicitRounds>(request.rounds_text, request.rounds_name, request.ranks);
}

}  // namespace

const std::vector<PatternInfo>& patterns() {
    static const std::vector<PatternInfo> table = {
        {"pair", "ranks 0 and 1", Shape::pairs, make_pair},
        {"pairs", "rank i with i + n/2", Shape::pairs, make_pairs},
        {"all-pairs", "every pair once: n-1 rounds of n/2 pairs", Shape::pairs, of_ranks_and_seed<AllPairs>},
        {"bisection", "each rank of the first half with each of the second half", Shape::pairs,
         of_ranks_and_seed<Bisection>},
        {"random", "random matchings", Shape::pairs, make_random},
        {"rounds", "the rounds that a file or --rounds spells out", Shape::pairs, make_rounds},
        {"fan-in", "all other hosts' ranks to the first host's", Shape::stars, make_fan_in},
        {"fan-out", "the first host's ranks to all other hosts'", Shape::stars, make_fan_out},
        {"clients-servers", "every client with every server, a server's clients at once", Shape::stars,
         make_clients_servers},
        {"world", "all ranks together: collectives", Shape::world, make_world},
        {"victim-aggressor", "pairs alone, then while other ranks make traffic", Shape::pairs, make_victim_aggressor},
    };
    return table;
}

const PatternInfo& pattern_named(const std::string& name) { return row_named(patterns(), name, "pattern"); }

std::unique_ptr<Pattern> make_pattern(const PatternRequest& request) {
    if (request.ranks < 2)
        throw usage_error("pattern " + request.kind + " needs at least 2 ranks, this run has " +
                          std::to_string(request.ranks) + ": start it with mpiexec -n 2");
    return pattern_named(request.kind).make(request);
}

}  // namespace fablint

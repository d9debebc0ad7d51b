#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "base/errors.hpp"
#include "patterns/pattern.hpp"

namespace fablint {

namespace {

// Rounds of a text: one round per line, pairs as 0-1, separated by blanks or commas.
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
    Role role(std::int64_t round, int rank) const override {
        const auto member = std::lower_bound(at(round).begin(), at(round).end(), rank, before);
        return member == at(round).end() || member->rank != rank
                   ? Role{}
                   : Role{Role::Kind::pair, {member->partner}, member->slot, -1};
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
        if (!dash || *end != '\0' || a < 0) throw usage_error(where + "'" + word + "' is not a pair: write it as 0-1");
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

}  // namespace

std::unique_ptr<Pattern> make_rounds(const PatternRequest& request) {
    return std::make_unique<ExplicitRounds>(request.rounds_text, request.rounds_name, request.ranks);
}

}  // namespace fablint

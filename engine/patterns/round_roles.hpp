// Explicit rounds: the partners of some ranks in each, and the text that has them.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace fablint {

// The partner of a rank in a round, -1: none, and the place of the pair among those of the round.
struct PairPlace {
    std::int32_t partner = -1;
    std::int32_t slot = -1;
};

// What consecutive ranks do in explicit rounds. A rank of a run holds its own only: 8 bytes for each round.
struct RoundRoles {
    int first_rank = 0;
    int ranks = 1;
    std::vector<std::int32_t> slots;  // pairs of each round, of all ranks
    std::vector<PairPlace> places;    // rank by rank, round by round
};

// Reads rounds of all ranks from a text: one round per line, pairs as 0-1, separated by blanks or commas. It holds no
// more than one line and the rounds that were asked for.
class RoundsReader {
  public:
    // `name` of the text, for messages.
    RoundsReader(std::istream& text, std::string name, int ranks);

    // The next rounds of all ranks, `most` of them or those that are left: none at the end. Throws a usage error at a
    // wrong line, and at the end of a text without rounds.
    RoundRoles next(std::size_t most);

  private:
    using Round = std::vector<PairPlace>;  // by rank

    int parse_line(std::string line, Round& round, const std::string& where) const;
    void add_pair(Round& round, int slot, const std::string& word, const std::string& where) const;

    std::istream& text_;
    std::string name_;
    int ranks_;
    int line_ = 0;
    bool has_rounds_ = false;
};

// The places of one rank in all rounds of a text in memory.
RoundRoles roles_of_rank(int rank, const std::string& text, const std::string& name, int ranks);

}  // namespace fablint

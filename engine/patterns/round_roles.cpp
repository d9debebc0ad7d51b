#include "patterns/round_roles.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <utility>

#include "base/errors.hpp"

namespace fablint {

RoundsReader::RoundsReader(std::istream& text, std::string name, int ranks)
    : text_(text), name_(std::move(name)), ranks_(ranks) {}

RoundRoles RoundsReader::next(std::size_t most) {
    RoundRoles roles;
    roles.ranks = ranks_;
    std::vector<Round> rounds;
    for (std::string line; rounds.size() < most && std::getline(text_, line);) {
        const std::string where = name_ + ":" + std::to_string(++line_) + ": ";
        Round round(static_cast<std::size_t>(ranks_));
        line.resize(std::min(line.size(), line.find('#')));
        const int slots = parse_line(std::move(line), round, where);
        if (slots == 0) continue;
        roles.slots.push_back(slots);
        rounds.push_back(std::move(round));
    }
    has_rounds_ = has_rounds_ || !rounds.empty();
    if (!has_rounds_) throw usage_error(name_ + ": no round in the file: write one round per line, such as 0-1 2-3");
    roles.places.reserve(rounds.size() * static_cast<std::size_t>(ranks_));
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks_); ++rank)
        for (const Round& round : rounds) roles.places.push_back(round[rank]);
    return roles;
}

// Returns the number of pairs. The line of a million ranks has tens of megabytes, and is not copied.
int RoundsReader::parse_line(std::string line, Round& round, const std::string& where) const {
    constexpr const char* blanks = ", \t\r\v\f";
    int slots = 0;
    for (std::size_t end = 0; (end = line.find_first_not_of(blanks, end)) != std::string::npos; ++slots) {
        const std::size_t begin = end;
        end = std::min(line.size(), line.find_first_of(blanks, begin));
        add_pair(round, slots, line.substr(begin, end - begin), where);
    }
    return slots;
}

void RoundsReader::add_pair(Round& round, int slot, const std::string& word, const std::string& where) const {
    char* end = nullptr;
    const long a = std::strtol(word.c_str(), &end, 10);
    const bool dash = end != word.c_str() && *end == '-' && std::isdigit(static_cast<unsigned char>(end[1])) != 0;
    const long b = dash ? std::strtol(end + 1, &end, 10) : -1;
    if (!dash || *end != '\0' || a < 0) throw usage_error(where + "'" + word + "' is not a pair: write it as 0-1");
    for (const auto& [rank, partner] : {std::pair(a, b), std::pair(b, a)}) {
        if (rank >= ranks_)
            throw usage_error(where + "rank " + std::to_string(rank) + " does not exist: this run has " +
                              std::to_string(ranks_) + " ranks");
        PairPlace& place = round[static_cast<std::size_t>(rank)];
        if (place.partner >= 0)
            throw usage_error(where + "rank " + std::to_string(rank) +
                              " appears twice: a rank has one partner per round");
        place = {static_cast<std::int32_t>(partner), slot};
    }
}

RoundRoles roles_of_rank(int rank, const std::string& text, const std::string& name, int ranks) {
    std::istringstream stream(text);
    const RoundRoles all = RoundsReader(stream, name, ranks).next(std::numeric_limits<std::size_t>::max());
    RoundRoles own;
    own.first_rank = rank;
    own.slots = all.slots;
    const auto begin = all.places.begin() + static_cast<std::ptrdiff_t>(all.slots.size()) * rank;
    own.places.assign(begin, begin + static_cast<std::ptrdiff_t>(all.slots.size()));
    return own;
}

}  // namespace fablint

// Who talks to whom in which round. Pure: no MPI, no file, no clock; O(1) memory per rank and round.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fablint {

// The place of one rank in one round. A round is a matching: a rank has at most one partner.
struct Seat {
    int partner = -1;  // -1: idle in this round
    int slot = -1;     // index of the pair within the round, the same at both ends, 0 .. slots-1
};

// How the cells of a run are stored, docs/reference/run-format.md.
enum class Layout { matrix, list };

class Pattern {
  public:
    virtual ~Pattern() = default;
    virtual Layout layout() const = 0;
    virtual std::int64_t rounds() const = 0;                    // of one repeat
    virtual int slots(std::int64_t round) const = 0;            // pairs in the round
    virtual Seat seat(std::int64_t round, int rank) const = 0;  // requires 0 <= round < rounds()
};

struct PatternRequest {
    std::string kind;
    int ranks = 0;
    std::uint64_t seed = 1;      // of this repeat
    std::int64_t matchings = 8;  // for random
    std::string rounds_text;     // content of the rounds file, for rounds
    std::string rounds_name;     // its name, for messages
};

struct PatternInfo {
    const char* name;
    const char* what;
};

// The table of patterns, in the order in which --list prints them.
const std::vector<PatternInfo>& patterns();

// Throws a usage error when the kind is unknown, the ranks do not suffice, or the rounds file is wrong.
std::unique_ptr<Pattern> make_pattern(const PatternRequest& request);

}  // namespace fablint

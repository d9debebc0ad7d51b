// Who talks to whom in which round. Pure: no MPI, no file, no clock; O(1) memory per rank and round, but for a hub,
// which knows its leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fablint {

// The place of one rank in one round. A round is a set of disjoint groups:
// pairs, stars (a hub and its leaves), the world (all ranks), or aggressors (ranks that only make traffic).
struct Seat {
    enum class Role { idle, pair, hub, leaf, world, aggressor };
    Role role = Role::idle;
    std::vector<int> peers;  // whom it exchanges payload with; empty for idle and world
    int slot = -1;           // index of the group within the round, the same for all of it, 0 .. slots-1
    int head = -1;  // the rank that leads the group: the hub, 0 of the world, the aggressors' first; -1: a pair

    bool idle() const { return role == Role::idle; }
    int partner() const { return peers.empty() ? -1 : peers.front(); }
};

// How the cells of a run are stored, docs/reference/run-format.md.
enum class Layout { matrix, list };

// What the groups of a pattern are: decides which kernels it can run. A set of the following.
using Shapes = unsigned;

namespace shape {
inline constexpr Shapes pairs = 1;
inline constexpr Shapes stars = 2;    // a hub and its leaves
inline constexpr Shapes servers = 4;  // stars whose hub serves requests
inline constexpr Shapes world = 8;
}  // namespace shape

// Sender in a star.
enum class StarSender { both, leaves, hub };

class Pattern {
  public:
    virtual ~Pattern() = default;
    virtual std::int64_t rounds() const { return 1; }           // of one repeat
    virtual int slots(std::int64_t round) const = 0;            // groups in the round that are measured
    virtual Seat seat(std::int64_t round, int rank) const = 0;  // requires 0 <= round < rounds()
    // Ordered pairs (of a world: ranks) of the round.
    virtual int cells(std::int64_t round) const { return 2 * slots(round); }
    // Peers of the rank that has most.
    virtual int fan() const { return 1; }
    // Do other ranks make traffic in this round?
    virtual bool loaded(std::int64_t) const { return false; }
    // The ranks that make it; in the order of their seats.
    virtual std::vector<int> aggressors() const { return {}; }
    // The ranks of the pairs that are measured beside them.
    virtual std::vector<int> victims() const { return {}; }
};

struct PatternRequest {
    std::string kind;
    int ranks = 0;
    std::uint64_t seed = 1;      // of this repeat
    std::int64_t matchings = 8;  // for random
    std::string rounds_text;     // content of the rounds file, for rounds
    std::string rounds_name;     // its name, for messages
    std::vector<int> rank_host;  // host of every rank, for fan-in and fan-out
    int servers = 1;             // for clients-servers
    int victims = 0;             // pairs, for victim-aggressor; 0: a tenth of the ranks, at least one
    bool incast = true;          // what the aggressors do: all to one, or all to all
};

// A row of registry/patterns.inc, which documents the fields.
struct PatternInfo {
    const char* name;
    const char* description;
    Shapes shape;
    Layout layout;
    StarSender sender;
    bool osu_table;
    const char* options;
    std::unique_ptr<Pattern> (*make)(const PatternRequest&);

    bool accepts(const std::string& option) const;  // an option that does not apply to every pattern
    bool pairs() const { return shape == shape::pairs; }
    bool stars() const { return shape == shape::stars || shape == shape::servers; }
};

// The table registry/patterns.inc.
const std::vector<PatternInfo>& patterns();
const PatternInfo& pattern_named(const std::string& name);  // throws a usage error

// Throws a usage error when the kind is unknown, the ranks do not suffice, or the rounds are wrong.
std::unique_ptr<Pattern> make_pattern(const PatternRequest& request);

// Defined in the files of patterns/.
#define PATTERN(identifier, ...) std::unique_ptr<Pattern> make_##identifier(const PatternRequest& request);
#include "registry/patterns.inc"

}  // namespace fablint

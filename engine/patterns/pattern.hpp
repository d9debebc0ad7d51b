// Patterns: which ranks communicate in which round. Pure: no MPI, no file, no clock. O(1) memory per rank and round,
// except for a hub, which knows its leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "patterns/round_roles.hpp"

namespace fablint {

// The role of one rank in one round. A round is a set of disjoint groups: pairs, stars (a hub and its leaves), the
// world (all ranks), or aggressors (ranks that generate background traffic).
struct Role {
    enum class Kind { idle, pair, hub, leaf, world, aggressor };
    Kind kind = Kind::idle;
    std::vector<int> peers;  // ranks with which it exchanges payload; empty for idle and world
    int slot = -1;           // index of the group within the round, 0 .. slots-1
    int head = -1;  // the rank that leads the group: the hub, rank 0 of the world, the first aggressor; -1: a pair

    bool idle() const { return kind == Kind::idle; }
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

// Traffic of other ranks in addition to the measured pairs, which some patterns have.
class BackgroundTraffic {
  public:
    virtual ~BackgroundTraffic() = default;
    virtual bool runs_in(std::int64_t round) const = 0;
    virtual std::vector<int> aggressors() const = 0;  // the ranks that generate it
    virtual std::vector<int> victims() const = 0;     // the ranks of the pairs that are measured
};

class Pattern {
  public:
    virtual ~Pattern() = default;
    virtual std::int64_t rounds() const { return 1; }  // of one repeat
    virtual int slots(std::int64_t round) const = 0;   // measured groups of the round
    // Requires 0 <= round < rounds(), and of explicit rounds one of the ranks whose roles were given.
    virtual Role role(std::int64_t round, int rank) const = 0;
    // Ordered pairs (in the world: ranks) that the round measures.
    virtual int cells(std::int64_t round) const { return 2 * slots(round); }
    // The largest number of peers of any rank.
    virtual int fan() const { return 1; }
    virtual const BackgroundTraffic* background() const { return nullptr; }
};

struct PatternRequest {
    std::string kind;
    int ranks = 0;
    int fewest_ranks = 2;        // 1: no message is sent
    std::uint64_t seed = 1;      // of this repeat
    std::int64_t matchings = 8;  // for random
    RoundRoles rounds;           // for rounds
    std::vector<int> rank_host;  // host of every rank, for fan-in and fan-out
    int servers = 1;             // for clients-servers
    int victims = 0;             // pairs, for victim-aggressor; 0: a tenth of the ranks, at least one
    bool incast = true;          // traffic of the aggressors: all to one; otherwise all to all
};

// A row of registry/patterns.inc, which documents the fields.
struct PatternInfo {
    const char* name = "";
    Shapes shape{};
    Layout layout{};
    StarSender sender = StarSender::both;
    bool osu_table = false;
    const char* options = "";
    const char* description = "";
    std::unique_ptr<Pattern> (*make)(const PatternRequest&) = nullptr;

    bool accepts(const std::string& option) const;  // an option that does not apply to every pattern
    bool has_pairs() const { return shape == shape::pairs; }
    bool has_stars() const { return shape == shape::stars || shape == shape::servers; }
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

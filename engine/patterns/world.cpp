#include "patterns/pattern.hpp"

namespace fablint {

namespace {

// All ranks in one group, for collectives.
class World : public Pattern {
  public:
    explicit World(int ranks) : ranks_(ranks) {}
    int slots(std::int64_t) const override { return 1; }
    int cells(std::int64_t) const override { return ranks_; }
    Role role(std::int64_t, int) const override { return {Role::Kind::world, {}, 0, 0}; }

  private:
    int ranks_;
};

}  // namespace

std::unique_ptr<Pattern> make_world(const PatternRequest& request) { return std::make_unique<World>(request.ranks); }

}  // namespace fablint

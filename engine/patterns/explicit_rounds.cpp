#include <utility>

#include "patterns/pattern.hpp"

namespace fablint {

namespace {

// Rounds of a file, of the ranks whose roles are given.
class ExplicitRounds : public Pattern {
  public:
    explicit ExplicitRounds(RoundRoles roles) : roles_(std::move(roles)) {}
    std::int64_t rounds() const override { return static_cast<std::int64_t>(roles_.slots.size()); }
    int slots(std::int64_t round) const override { return roles_.slots[static_cast<std::size_t>(round)]; }
    Role role(std::int64_t round, int rank) const override {
        const PairPlace& place = roles_.places[static_cast<std::size_t>((rank - roles_.first_rank) * rounds() + round)];
        return place.partner < 0 ? Role{} : Role{Role::Kind::pair, {place.partner}, place.slot, -1};
    }

  private:
    RoundRoles roles_;
};

}  // namespace

std::unique_ptr<Pattern> make_rounds(const PatternRequest& request) {
    return std::make_unique<ExplicitRounds>(request.rounds);
}

}  // namespace fablint

#include "both_ways.hpp"

namespace fablint {

namespace {

// A window in each direction at once, as osu_bibw.
class Bibandwidth : public BothWays {
  public:
    Quantity quantity() const override { return Quantity::bandwidth; }
    bool windowed() const override { return true; }
    int messages(int window) const override { return window; }
};

}  // namespace

const Kernel& bibandwidth_kernel() {
    static const Bibandwidth kernel;
    return kernel;
}

}  // namespace fablint

#include "patterns/pattern.hpp"

#include "base/errors.hpp"
#include "base/table.hpp"

namespace fablint {

const std::vector<PatternInfo>& patterns() {
    using namespace shape;
    constexpr bool osu = true;
    constexpr bool no = false;
    static const std::vector<PatternInfo> table = {
#define PATTERN(identifier, name, shape, layout, sender, table, options, description) \
    {name, description, shape, Layout::layout, StarSender::sender, table, options, make_##identifier},
#include "registry/patterns.inc"
    };
    return table;
}

bool PatternInfo::accepts(const std::string& option) const { return has_word(options, option); }

const PatternInfo& pattern_named(const std::string& name) { return row_named(patterns(), name, "pattern"); }

std::unique_ptr<Pattern> make_pattern(const PatternRequest& request) {
    if (request.ranks < request.fewest_ranks)
        throw usage_error("pattern " + request.kind + " needs at least 2 ranks, this run has " +
                          std::to_string(request.ranks) + ": start it with mpiexec -n 2");
    return pattern_named(request.kind).make(request);
}

}  // namespace fablint

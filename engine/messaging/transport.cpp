#include "messaging/transport.hpp"

#include "base/table.hpp"

namespace fablint {

const std::vector<TransportInfo>& transports() {
    using namespace capability;
    constexpr bool moves = true;
    constexpr bool moves_nothing = false;
    constexpr bool fabric = false;
    constexpr bool host = true;
    static const std::vector<TransportInfo> table = {
#define TRANSPORT(identifier, name, offers, options, wins, syncs, bytes, reach, memories, description) \
    {name, description, offers, options, wins, syncs, bytes, reach, memories, make_##identifier##_transport},
#include "registry/transports.inc"
    };
    return table;
}

bool TransportInfo::accepts(const std::string& option) const { return has_word(options, option); }

std::string TransportInfo::default_memory() const {
    const std::string all = memories;
    return all.substr(0, all.find(' '));
}

const TransportInfo& transport_named(const std::string& name) { return row_named(transports(), name, "transport"); }

std::string capability_names(Capabilities capabilities) {
    using namespace capability;
    const std::pair<Capabilities, const char*> names[] = {
        {persistent, "persistent"},  {thread_lanes, "thread_lanes"}, {rma, "rma"},
        {atomics, "atomics"},        {accumulation, "accumulation"}, {request_queue, "request_queue"},
        {collectives, "collectives"}};
    std::string text;
    for (const auto& [bit, name] : names)
        if ((capabilities & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

}  // namespace fablint

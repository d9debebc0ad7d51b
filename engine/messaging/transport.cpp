#include "messaging/transport.hpp"

#include "base/table.hpp"

namespace fablint {

const std::vector<TransportInfo>& transports() {
    using namespace capability;
    static const std::vector<TransportInfo> table = {
#define TRANSPORT(identifier, ...) ROW_OF_TABLE(TransportInfo, make = make_##identifier##_transport, __VA_ARGS__),
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
        {persistent, "persistent"},   {thread_lanes, "thread_lanes"},      {rma, "rma"},
        {atomics, "atomics"},         {accumulation, "accumulation"},      {request_queue, "request_queue"},
        {collectives, "collectives"}, {mpi_collectives, "mpi_collectives"}};
    std::string text;
    for (const auto& [bit, name] : names)
        if ((capabilities & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

}  // namespace fablint

#include "transports/transport.hpp"

#include "base/table.hpp"

namespace fablint {

const std::vector<TransportInfo>& transports() {
    static const std::vector<TransportInfo> table = {
        {"mpi", "MPI point to point", true, make_mpi_transport},
        {"null", "moves nothing: the instrument's own cost", false, make_null_transport},
        {"corrupt", "mpi that damages payloads: proves that --validate works", true, make_corrupt_transport},
    };
    return table;
}

const TransportInfo& transport_named(const std::string& name) { return row_named(transports(), name, "transport"); }

}  // namespace fablint

// Calls of MPI for the collectives that MPI alone has.
#pragma once

#include <vector>

#include "base/mpi_c.hpp"
#include "messaging/capabilities.hpp"

#ifndef FABLINT_WITHOUT_MPI

namespace fablint {

class MpiCollectiveCalls {
  public:
    void run(MpiCollective collective, const void* data, void* result, std::size_t bytes);
    void start(MpiCollective collective, const void* data, void* result, std::size_t bytes, MPI_Request* request);

  private:
    void prepare(std::size_t bytes);  // lengths and places of the parts: outside of the call, unless they change

    int rank_ = -1;
    std::size_t bytes_ = 0;
    std::vector<int> counts_;                   // bytes of the part of each rank
    std::vector<int> places_;                   // its offset
    std::vector<MPI_Datatype> bytes_of_ranks_;  // MPI_BYTE for each rank
    std::vector<int> elements_;                 // floats of the part of each rank, of a sum of bytes_ together
};

}  // namespace fablint

#endif

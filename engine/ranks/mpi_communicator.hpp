// The communicator of the ranks that measure: all of them, or those that a request of --serve names.
#pragma once

#include "base/mpi_c.hpp"

#ifndef FABLINT_WITHOUT_MPI

namespace fablint {

inline MPI_Comm chosen_ranks = MPI_COMM_NULL;  // null: all

inline MPI_Comm mpi_communicator() { return chosen_ranks == MPI_COMM_NULL ? MPI_COMM_WORLD : chosen_ranks; }

}  // namespace fablint

#endif

// Runs the test cases on all ranks at once. A rank prints its report only if something failed on it, rank 0 always.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest.h>

#include <iostream>
#include <sstream>

#include "base/mpi_c.hpp"

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::ostringstream report;
    doctest::Context context(argc, argv);
    context.setOption("no-colors", true);
    context.setCout(&report);
    const int failed = context.run();
    if (rank == 0 || failed != 0) std::cout << "rank " << rank << ":\n" << report.str() << std::flush;
    int any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}

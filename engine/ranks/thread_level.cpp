#include "ranks/thread_level.hpp"

#include "base/mpi_c.hpp"

namespace fablint {

void start_mpi(int& argc, char**& argv, bool threads) {
    if (!threads) {
        MPI_Init(&argc, &argv);
        return;
    }
    int provided = 0;  // check_threads() of session.cpp asks the library again
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
}

std::string thread_level() {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    switch (level) {
        case MPI_THREAD_FUNNELED:
            return "funneled";
        case MPI_THREAD_SERIALIZED:
            return "serialized";
        case MPI_THREAD_MULTIPLE:
            return "multiple";
        default:
            return "single";
    }
}

}  // namespace fablint

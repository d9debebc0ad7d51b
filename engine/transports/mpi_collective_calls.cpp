#include "transports/mpi_collective_calls.hpp"

#include "ranks/mpi_communicator.hpp"
#include "transports/mpi_count.hpp"

#ifndef FABLINT_WITHOUT_MPI

namespace fablint {

void MpiCollectiveCalls::prepare(std::size_t bytes) {
    int ranks = 0;
    MPI_Comm_size(mpi_communicator(), &ranks);
    MPI_Comm_rank(mpi_communicator(), &rank_);
    bytes_ = bytes;
    counts_.assign(static_cast<std::size_t>(ranks), count_of(bytes));
    bytes_of_ranks_.assign(static_cast<std::size_t>(ranks), MPI_BYTE);
    places_.clear();
    elements_.clear();
    const int floats = static_cast<int>(bytes / sizeof(float));
    for (int rank = 0; rank < ranks; ++rank) {
        places_.push_back(static_cast<int>(bytes * static_cast<std::size_t>(rank)));
        elements_.push_back(floats / ranks + (rank < floats % ranks ? 1 : 0));
    }
}

void MpiCollectiveCalls::run(MpiCollective collective, const void* data, void* result, std::size_t bytes) {
    if (rank_ < 0 || bytes != bytes_) prepare(bytes);
    const int count = counts_.front();
    const int* const counts = counts_.data();
    const int* const places = places_.data();
    switch (collective) {
        case MpiCollective::reduce:
            MPI_Reduce(data, result, count_of(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, root_rank,
                       mpi_communicator());
            return;
        case MpiCollective::reduce_scatter:
            MPI_Reduce_scatter(data, result, elements_.data(), MPI_FLOAT, MPI_SUM, mpi_communicator());
            return;
        case MpiCollective::reduce_scatter_block:
            MPI_Reduce_scatter_block(data, result, elements_.back(), MPI_FLOAT, MPI_SUM, mpi_communicator());
            return;
        case MpiCollective::gather:
            MPI_Gather(data, count, MPI_BYTE, result, count, MPI_BYTE, root_rank, mpi_communicator());
            return;
        case MpiCollective::scatter:
            MPI_Scatter(data, count, MPI_BYTE, result, count, MPI_BYTE, root_rank, mpi_communicator());
            return;
        case MpiCollective::gatherv:
            MPI_Gatherv(data, count, MPI_BYTE, result, counts, places, MPI_BYTE, root_rank, mpi_communicator());
            return;
        case MpiCollective::scatterv:
            MPI_Scatterv(data, counts, places, MPI_BYTE, result, count, MPI_BYTE, root_rank, mpi_communicator());
            return;
        case MpiCollective::all_gatherv:
            MPI_Allgatherv(data, count, MPI_BYTE, result, counts, places, MPI_BYTE, mpi_communicator());
            return;
        case MpiCollective::all_to_allv:
            MPI_Alltoallv(data, counts, places, MPI_BYTE, result, counts, places, MPI_BYTE, mpi_communicator());
            return;
        case MpiCollective::all_to_allw:
            MPI_Alltoallw(data, counts, places, bytes_of_ranks_.data(), result, counts, places, bytes_of_ranks_.data(),
                          mpi_communicator());
            return;
        default:  // those that Collectives has as well
            MPI_Request request = MPI_REQUEST_NULL;
            start(collective, data, result, bytes, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

void MpiCollectiveCalls::start(MpiCollective collective, const void* data, void* result, std::size_t bytes,
                               MPI_Request* request) {
    if (rank_ < 0 || bytes != bytes_) prepare(bytes);
    const int count = counts_.front();
    const int floats = static_cast<int>(bytes / sizeof(float));
    const int* const counts = counts_.data();
    const int* const places = places_.data();
    const MPI_Comm world = mpi_communicator();
    switch (collective) {
        case MpiCollective::barrier:
            MPI_Ibarrier(world, request);
            return;
        case MpiCollective::broadcast:
            MPI_Ibcast(rank_ == root_rank ? const_cast<void*>(data) : result, count, MPI_BYTE, root_rank, world,
                       request);
            return;
        case MpiCollective::all_reduce:
            MPI_Iallreduce(data, result, floats, MPI_FLOAT, MPI_SUM, world, request);
            return;
        case MpiCollective::all_gather:
            MPI_Iallgather(data, count, MPI_BYTE, result, count, MPI_BYTE, world, request);
            return;
        case MpiCollective::all_to_all:
            MPI_Ialltoall(data, count, MPI_BYTE, result, count, MPI_BYTE, world, request);
            return;
        case MpiCollective::reduce:
            MPI_Ireduce(data, result, floats, MPI_FLOAT, MPI_SUM, root_rank, world, request);
            return;
        case MpiCollective::reduce_scatter:
            MPI_Ireduce_scatter(data, result, elements_.data(), MPI_FLOAT, MPI_SUM, world, request);
            return;
        case MpiCollective::reduce_scatter_block:
            MPI_Ireduce_scatter_block(data, result, elements_.back(), MPI_FLOAT, MPI_SUM, world, request);
            return;
        case MpiCollective::gather:
            MPI_Igather(data, count, MPI_BYTE, result, count, MPI_BYTE, root_rank, world, request);
            return;
        case MpiCollective::scatter:
            MPI_Iscatter(data, count, MPI_BYTE, result, count, MPI_BYTE, root_rank, world, request);
            return;
        case MpiCollective::gatherv:
            MPI_Igatherv(data, count, MPI_BYTE, result, counts, places, MPI_BYTE, root_rank, world, request);
            return;
        case MpiCollective::scatterv:
            MPI_Iscatterv(data, counts, places, MPI_BYTE, result, count, MPI_BYTE, root_rank, world, request);
            return;
        case MpiCollective::all_gatherv:
            MPI_Iallgatherv(data, count, MPI_BYTE, result, counts, places, MPI_BYTE, world, request);
            return;
        case MpiCollective::all_to_allv:
            MPI_Ialltoallv(data, counts, places, MPI_BYTE, result, counts, places, MPI_BYTE, world, request);
            return;
        case MpiCollective::all_to_allw:
            MPI_Ialltoallw(data, counts, places, bytes_of_ranks_.data(), result, counts, places, bytes_of_ranks_.data(),
                           world, request);
            return;
    }
}

}  // namespace fablint

#endif

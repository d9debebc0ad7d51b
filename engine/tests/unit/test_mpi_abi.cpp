#include <doctest.h>

#include <string>
#include <vector>

#include "ranks/mpi_abi.hpp"

using namespace fablint;

namespace {

const std::string mpich = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n";
const std::string cray = "MPI VERSION    : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)\nMPI BUILD INFO : Sun";
const std::string intel = "Intel(R) MPI Library 2021.10 for Linux* OS\n";
const std::string mvapich2 = "MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date :\tWed March 02 22:00:00 EST 2022";
const std::string open_mpi_4 = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
const std::string hpc_x = "Open MPI v4.1.7a1, package: Open MPI root@hpc-kernel-03 Distribution, ident: 4.1.7a1";
const std::string fujitsu = "FUJITSU MPI Library 4.0.1 (4.0.1fj4.0.0)";
const std::string unknown = "HPE MPT 2.25  08/19/21 03:16:01";

}  // namespace

TEST_CASE("MPI libraries of one interface replace each other, and those of two do not") {
    const std::vector<std::string> mpich_family = {
        mpich, cray, intel, mvapich2, "MPICH 3.4a2", "MVAPICH2 2.3.7", "Intel(R) MPI Library 2019.0.4"};
    const std::vector<std::string> open_mpi_family = {open_mpi_4,        hpc_x,      fujitsu,
                                                      "Open MPI v5.0.3", "Open MPI", "IBM Spectrum MPI v10.4.0"};
    for (const std::string& first : mpich_family) {
        for (const std::string& second : mpich_family) CHECK(is_compatible(first, second));
        for (const std::string& other : open_mpi_family) {
            CAPTURE(first);
            CAPTURE(other);
            CHECK_FALSE(is_compatible(first, other));
            CHECK_FALSE(is_compatible(other, first));
        }
    }
    for (const std::string& first : open_mpi_family)
        for (const std::string& second : open_mpi_family) CHECK(is_compatible(first, second));
}

TEST_CASE("Open MPI has one interface since version 3, and another in each earlier version") {
    CHECK(is_compatible("Open MPI v3.1.0", open_mpi_4));
    CHECK_FALSE(is_compatible("Open MPI v1.10.7", open_mpi_4));
    CHECK_FALSE(is_compatible(open_mpi_4, "Open MPI v2.1.1, package: Open MPI, ident: 2.1.1"));
    CHECK(is_compatible("Open MPI v1.8.1", "Open MPI v1.10.7"));
}

TEST_CASE("an unknown MPI library is not refused") {
    for (const std::string& other : {mpich, open_mpi_4, unknown, std::string()}) {
        CHECK(is_compatible(unknown, other));
        CHECK(is_compatible(other, unknown));
        CHECK(is_compatible("", other));
    }
}

TEST_CASE("what a description says of the build does not name the library") {
    CHECK(abi_of(mpich + "MPICH Configure: --prefix=/opt/Open MPI/x") == "MPICH");
    CHECK(abi_of(open_mpi_4 + " built beside MPICH") == "Open MPI");
    CHECK(abi_of("none of them").empty());
}

TEST_CASE("the name and version of a library are one line") {
    CHECK(name_and_version(mpich) == "MPICH Version: 4.0.2");
    CHECK(name_and_version(open_mpi_4) == "Open MPI v4.1.4");
    CHECK(name_and_version(cray) == "MPI VERSION : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)");
    CHECK(name_and_version("").empty());
}

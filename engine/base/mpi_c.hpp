// MPI's C interface without the C++ bindings of some libraries, which do not compile without warnings.
#pragma once

#ifndef FABLINT_WITHOUT_MPI
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
#endif

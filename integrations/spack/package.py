"""Spack package of fablint: copy this folder to `packages/fablint/` of a Spack repository."""

import os

from spack.package import *


class Fablint(PythonPackage):
    """Measures the fabric of an HPC or AI cluster and localises faulty components: host, NIC, cable, link or switch."""

    homepage = "https://example.org/fablint"
    # fablint is on no server: place the source distribution in the folder where spack is started.
    manual_download = True
    url = f"file://{os.getcwd()}/fablint-0.2.0.tar.gz"

    license("Apache-2.0")

    version("0.2.0")

    variant("xarray", default=False, description="Open runs in Python as labelled data (fablint.open_run)")
    variant("export", default=False, description="Export runs as netCDF, HDF5 and Parquet")

    # The engine is built with the mpicxx of this MPI when it is first used.
    depends_on("mpi@3.1:", type=("build", "run"))
    depends_on("cxx", type=("build", "run"))

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.25:", type="build")
    depends_on("py-click@8.1:8", type=("build", "run"))
    depends_on("py-pydantic@2.7:2", type=("build", "run"))
    depends_on("py-clustershell@1.9.2:1", type=("build", "run"))
    depends_on("py-rich@13.7:15", type=("build", "run"))
    depends_on("py-numpy@1.26:2", type=("build", "run"))
    depends_on("py-scipy@1.12:1", type=("build", "run"))
    depends_on("py-zarr@3.0.8:3", type=("build", "run"))
    depends_on("py-jinja2@3.1:3", type=("build", "run"))
    depends_on("py-pyyaml@6.0:6", type=("build", "run"))
    depends_on("py-tomlkit@0.12:0", type=("build", "run"))
    depends_on("py-prometheus-client@0.20:0", type=("build", "run"))

    with when("+xarray"):
        depends_on("py-xarray@2024.10:", type=("build", "run"))

    with when("+export"):
        depends_on("py-h5netcdf@1.3:1", type=("build", "run"))
        depends_on("py-h5py@3.10:3", type=("build", "run"))
        depends_on("py-pyarrow@15:", type=("build", "run"))

    def setup_run_environment(self, env):
        env.set("FABLINT_MPICXX", self.spec["mpi"].mpicxx)

-- Lmod: copy to MODULEPATH as fablint/0.2.0.lua, and set `prefix` to the virtual environment that has fablint.
local prefix = "/opt/fablint"

whatis("Name: fablint")
whatis("Version: 0.2.0")
whatis("Category: benchmark, network")
whatis("Description: measures the fabric of a cluster and localises faulty components")
whatis("URL: https://example.org/fablint")

help([[
fablint measures the fabric of a cluster and localises faulty components.

    salloc -N 16
    fablint check

The engine is built once for each MPI module, with its mpicxx. `man fablint` and `fablint --help` list the verbs.
]])

-- The program alone: the other programs of the environment, python among them, must not hide those of the site.
prepend_path("PATH", pathJoin(prefix, "module-bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
append_path("MANPATH", "")  -- and the system's pages

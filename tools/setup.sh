#!/bin/sh
# setup.sh [test|fuzz|valgrind|aarch64|slurm|browser] - install what building needs (and what the tests, fuzzing, valgrind, the emulated
# tests, those with Slurm or those in a browser need besides): by apt as root or through sudo, else print the exact list.
CC=${CC:-cc}
missing=
need() { # package, then a command that succeeds when it is there
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
have() { printf '#include <%s>\nint main(void) { return 0; }\n' "$1" | $CC -include stdarg.h -include stddef.h -include stdint.h -include setjmp.h -x c - $2 -o /dev/null; }
need gcc command -v "$CC"
need libc6-dev have stdio.h
need binutils command -v ar
need pkg-config command -v pkg-config
need libcjson-dev have cjson/cJSON.h -lcjson
need libyaml-dev have yaml.h
need libopenblas-dev have cblas.h -lopenblas
need libhdf5-dev sh -c 'ls /usr/include/hdf5/serial/hdf5.h || pkg-config --exists hdf5'
need libmicrohttpd-dev have microhttpd.h -lmicrohttpd # the studio
need libyaml-0-2 sh -c 'ls /lib/*/libyaml-0.so.2 || ls /lib*/libyaml-0.so.2' # opened to read YAML
need libsnappy1v5 sh -c 'ls /lib/*/libsnappy.so.1 || ls /lib*/libsnappy.so.1' # Parquet files are read with these two
need libzstd1 sh -c 'ls /lib/*/libzstd.so.1 || ls /lib*/libzstd.so.1'
if [ "$1" = test ]; then
    need libcmocka-dev have cmocka.h -lcmocka
    need g++ command -v g++
    need curl command -v curl
    need python3 command -v python3
    need hdf5-tools command -v h5dump
    need libopenmpi-dev sh -c 'pkg-config --exists ompi-c || command -v mpicc' # ranks
    need openmpi-bin command -v mpirun
    if [ -e /etc/debian_version ]; then # the library is tested under each of Debian's builds
        need musl-tools command -v musl-gcc # the sources are checked against another C library
        need libopenblas0-pthread sh -c 'ls /usr/lib/*/openblas-pthread/libopenblas.so.0'
        need libopenblas0-openmp sh -c 'ls /usr/lib/*/openblas-openmp/libopenblas.so.0'
        need libopenblas0-serial sh -c 'ls /usr/lib/*/openblas-serial/libopenblas.so.0'
    fi
fi
[ "$1" != valgrind ] || need valgrind command -v valgrind
if [ "$1" = browser ]; then
    need chromium-headless-shell sh -c 'command -v chromium-headless-shell || command -v chromium || command -v google-chrome'
    need fonts-dejavu-core sh -c 'ls /usr/share/fonts/*/*'
fi
if [ "$1" = slurm ]; then
    need slurmctld command -v slurmctld
    need slurmd command -v slurmd
    need slurm-client command -v sbatch
    need munge command -v munged
    need slurmdbd command -v slurmdbd # with the database, for sacct
    need mariadb-server command -v mariadbd
    need openssh-server sh -c 'command -v sshd || ls /usr/sbin/sshd'
    need openssh-client command -v ssh
    need runc command -v runc
fi
if [ "$1" = aarch64 ]; then
    need gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
    need libc6-dev-arm64-cross sh -c 'echo "#include <stdio.h>" | aarch64-linux-gnu-gcc -E -'
    need qemu-user command -v qemu-aarch64
fi
if [ "$1" = fuzz ]; then
    need clang command -v clang
    need libclang-rt-dev sh -c 'echo "int LLVMFuzzerTestOneInput(void) { return 0; }" | clang -fsanitize=fuzzer,address -x c - -o /dev/null'
fi
[ -z "$missing" ] && exit 0
echo "# missing:$missing"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "install these packages (names as in Debian):$missing" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo="sudo -n"; else
        echo "as root, run: apt-get update && apt-get install -y --no-install-recommends$missing" >&2
        exit 1
    fi
fi
$sudo apt-get update -q || exit 1
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends $missing || exit 1

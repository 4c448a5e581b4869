"""The program of a rank of an emulated cluster: takes the rank's share of the cores and becomes
Python with these arguments, which are a script or -m MODULE, and its own."""

import os
import sys

from neuroshard.bench._cluster.cores import join

if __name__ == "__main__":
    join()
    os.execv(sys.executable, [sys.executable, "-u", *sys.argv[1:]])

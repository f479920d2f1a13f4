"""What the compiler reported of each cubin in the cache, against cuobjdump.   resources.py"""

import glob
import os
import re
import subprocess
import sys
import tempfile

RESERVED = 1024  # bytes of shared memory that the driver keeps in a block which uses any, counted by some versions of cuobjdump

folder = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "tilewright", "cubin")
wrong = compared = 0
for path in glob.glob(folder + "/*"):
    content = open(path, "rb").read()[41:]
    report, _, image = content.partition(b"\n\n")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        text = subprocess.run(["cuobjdump", "-res-usage", file.name], capture_output=True, text=True).stdout
    usage = {m[1]: m for m in re.finditer(r"Function (\w+):\s*REG:(\d+) STACK:(\d+) SHARED:(\d+)", text)}
    for line in report.decode().splitlines():
        name, registers, _, _, shared, stack = line.split()
        found = usage.get(name)
        compared += 1
        if not found or (registers, stack) != (found[2], found[3]) or int(found[4]) - int(shared) not in (0, RESERVED):
            wrong += 1
            print(f"{name}: reported {registers} registers, {stack} stack, {shared} shared; cuobjdump: {found and found[0]}")
print(f"{compared} functions compared, {wrong} differ")
sys.exit(1 if wrong or not compared else 0)

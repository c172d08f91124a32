"""apply.py PAGE SOURCE COUNT - a recipe, edited as a page of docs/ says.

The page has COUNT ```diff blocks. Each one's text without the lines added stands in the source once, and becomes the text
without the lines taken away. The result goes to standard output.
"""
import re
import sys

page, source = open(sys.argv[1]).read(), open(sys.argv[2]).read()
blocks = re.findall(r"^```diff\n(.*?)^```$", page, re.M | re.S)
assert len(blocks) == int(sys.argv[3]), len(blocks)
for block in blocks:
    lines = block.splitlines(True)
    old = "".join(l[1:] for l in lines if l[0] in " -")
    new = "".join(l[1:] for l in lines if l[0] in " +")
    assert source.count(old) == 1, f"{source.count(old)} times in the recipe:\n{old}"
    source = source.replace(old, new)
sys.stdout.write(source)

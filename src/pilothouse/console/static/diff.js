// What changed between two texts, line by line.

const MOST = 4e6;

/** [kind, line] with kind "+", "-" or " ": the shortest way from one text to the other. */
export function diffLines(from, to) {
  const a = from.split("\n"), b = to.split("\n");
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start += 1;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA -= 1; endB -= 1; }
  const same = (lines) => lines.map((line) => [" ", line]);
  const middle = changed(a.slice(start, endA), b.slice(start, endB));
  return [...same(a.slice(0, start)), ...middle, ...same(a.slice(endA))];
}

function changed(a, b) {
  if (a.length * b.length > MOST) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      longest[i * width + j] = a[i] === b[j]
        ? longest[(i + 1) * width + j + 1] + 1
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  const found = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { found.push([" ", a[i]]); i += 1; j += 1; }
    else if (j === b.length || (i < a.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
      found.push(["-", a[i]]); i += 1;
    } else { found.push(["+", b[j]]); j += 1; }
  }
  return found;
}

/** Only the lines around changes; null stands for what is left out. */
export function hunks(lines, around = 3) {
  const near = lines.map(() => false);
  lines.forEach(([kind], at) => {
    if (kind !== " ") for (let i = Math.max(0, at - around); i <= Math.min(lines.length - 1, at + around); i += 1) near[i] = true;
  });
  const found = [];
  lines.forEach((line, at) => {
    if (near[at]) found.push(line);
    else if (found.length === 0 || found[found.length - 1] !== null) found.push(null);
  });
  return found;
}

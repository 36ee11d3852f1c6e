/** The known id closest to a mistyped one, or null if more than a third of the characters, or more than half of a short id, would have to change. */
export function nearestName(typed: string, known: Iterable<string>): string | null {
  const wanted = typed.toLowerCase();
  let best: string | null = null;
  let least = Math.max(2, Math.ceil(typed.length / 3)) + 1;
  for (const candidate of known) {
    const name = candidate.toLowerCase();
    // Names differ by their lengths at least. Without this, a long text would be compared with every name.
    if (Math.abs(wanted.length - name.length) >= least) continue;
    const distance = editDistance(wanted, name);
    const isNear = distance * 2 <= Math.max(wanted.length, name.length);
    if (distance < least && isNear) [best, least] = [candidate, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replace = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current[column] = Math.min(replace, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}

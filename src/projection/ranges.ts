/** 1, 2, 3, 7 as `1–3, 7`. */
export function ranges(seqs: readonly number[]): string {
  const parts: { from: number; to: number }[] = [];
  for (const seq of seqs) {
    const last = parts.at(-1);
    if (last && seq === last.to + 1) last.to = seq;
    else parts.push({ from: seq, to: seq });
  }
  return parts.map(({ from, to }) => (from === to ? `${from}` : `${from}–${to}`)).join(', ');
}

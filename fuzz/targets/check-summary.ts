import { createHmac } from 'node:crypto';
import { Broken } from '../target.ts';
import { MARK, refuseFences } from './check-words.ts';
import { SECRET } from './hostile-text.ts';

/**
 * Reads a summary as it was sent, without using the code that rendered it: every fence is one of ours, opened once, closed
 * once and on its own lines, and every quote stands behind its own header or in the fence below it.
 */
const FENCE = /<(\/?)(msg|missed|handoff|reminder|summary|transcript)-([0-9a-f]{8})>/g;
const LINE_END = /[\n\r\v\f\u0085\u2028\u2029]/;
/** Replaces a fence once it is read. No prompt contains two such lone surrogates together. */
const HOLE = '\ud800\ud800';

interface Region {
  tag: string;
  /** The event with this key; null if the key belongs to no event. */
  seq: number | null;
  from: number;
  to: number;
  inner: Region[];
  end: number;
  start: number;
}

/** Checks a summary and its quotes against the names of the speakers. Quotes of one line have no fence. */
export function checkSummary(content: string, quotes: number): void {
  const keys = keysOf(Array.from({ length: quotes }, (_, index) => index + 1));
  const regions = readFences(content, keys);
  const [summary] = regions;
  if (
    regions.length !== 1 ||
    summary?.tag !== 'summary' ||
    summary.start !== 0 ||
    summary.end !== content.length
  )
    throw new Broken('a summary is not one fence');
  for (const { seq, from, to } of summary.inner) {
    const words = content.slice(from, to);
    if (!words.startsWith(`w${seq}a`) || !words.endsWith(`w${seq}z`))
      throw new Broken('a quote is not what its fence holds');
    refuseFences(words);
    if (headsIn(words.split(LINE_END)).length > 0) throw new Broken('a quote has a header in its fence');
  }
  const rest = outside(content, summary.from, summary.to, summary.inner);
  checkQuoteLines(rest.split(LINE_END), summary.inner, quotes);
}

/** Every quote has one header, in order, with its words behind it or in the fence below it. */
function checkQuoteLines(lines: readonly string[], inner: readonly Region[], quotes: number): void {
  const heads = headsIn(lines);
  if (heads.length !== quotes) throw new Broken('a summary has other headers than its quotes');
  const fences = [...inner];
  for (const [index, { at, words }] of heads.entries()) {
    const seq = index + 1;
    const fenced = words === null ? fences.shift() : undefined;
    if (words === null && (lines[at + 1] !== HOLE || fenced?.seq !== seq))
      throw new Broken('a quote stands in the fence of another');
    if (words !== null && !(words.startsWith(`w${seq}a`) && words.endsWith(`w${seq}z`)))
      throw new Broken('a quote is not what stands behind its header');
  }
  if (fences.length > 0) throw new Broken('a summary has other fences than its quotes');
  const own = new Set(heads.map(({ at }) => at));
  for (const [at, line] of lines.entries())
    for (const [, n] of line.matchAll(MARK))
      if (n !== '0' && !own.has(at)) throw new Broken('a quote is outside of its line');
}

function headsIn(lines: readonly string[]): { at: number; words: string | null }[] {
  return lines.flatMap((line, at) => {
    const found = /^\s*\[.*?\] #\d+(?: \(not trusted\))?(?: \(shortened\))?(?:$|: (.*)$)/s.exec(line);
    return found ? [{ at, words: found[1] ?? null }] : [];
  });
}

function readFences(content: string, keys: ReadonlyMap<string, number | null>): Region[] {
  const top: Region[] = [];
  const open: Region[] = [];
  const opened = new Set<string>();
  for (const match of content.matchAll(FENCE)) {
    const [whole, slash = '', tag = '', key = ''] = match;
    const name = `${tag}-${key}`;
    const start = match.index;
    const end = start + whole.length;
    if (!keys.has(key)) throw new Broken(`a fence that is not ours: ${whole}`);
    if (slash === '') {
      if (opened.has(name) || content[end] !== '\n')
        throw new Broken(`${whole} is opened again, or within a line`);
      opened.add(name);
      const region = { tag, seq: keys.get(key) ?? null, start, from: end + 1, to: 0, end: 0, inner: [] };
      (open.at(-1)?.inner ?? top).push(region);
      open.push(region);
      continue;
    }
    const region = open.pop();
    if (region?.tag !== tag || keys.get(key) !== region.seq || content[start - 1] !== '\n')
      throw new Broken(`${whole} closes what it has not opened`);
    region.to = start - 1;
    region.end = end;
  }
  if (open.length > 0) throw new Broken('a fence is never closed');
  return top;
}

function outside(content: string, from: number, to: number, regions: readonly Region[]): string {
  let text = '';
  let at = from;
  for (const { start, end } of regions) {
    text += content.slice(at, start) + HOLE;
    at = end;
  }
  return text + content.slice(at, to);
}

function keysOf(seqs: readonly number[]): Map<string, number | null> {
  const key = (place: string) => createHmac('sha256', SECRET).update(place).digest('hex').slice(0, 8);
  return new Map([
    ...seqs.map((seq): [string, number | null] => [key(`${seq}`), seq]),
    [key('compaction 1'), null],
  ]);
}
